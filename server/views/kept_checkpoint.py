"""A checkpoint that is asked for by its name before anything is done for its sake."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.memory.store.file.guarding.store_file import store_is_there


def require_kept(store: Path, name: str) -> None:
    """Raises E060 where there is no store and no checkpoint of this name to make one of."""
    from speckit_memory.memory.store.checkpoints.folder import Folder

    if not store_is_there(store):
        Folder(store).get(name)
