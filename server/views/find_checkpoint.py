"""Checks that a named checkpoint exists before a store is created for it."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.memory.store.file.guarding.store_file import store_is_there


def require_kept(store: Path, name: str) -> None:
    """Raises E060 if there is neither a store nor a checkpoint of this name to create it from."""
    from speckit_memory.memory.store.checkpoints.folder import Folder

    if not store_is_there(store):
        Folder(store).get(name)
