"""Finds the deletions that moved the files of memories aside (feature M14)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from speckit_memory.memory.editing.aside import lying_aside
from speckit_memory.memory.store.checkpoints import deletions


def kept_by(store: Path, keys: Collection[str]) -> tuple[str, ...]:
    """The names of the deletions that moved files with these keys aside, latest first."""
    wanted = frozenset(keys)
    return tuple(gone.name for gone in deletions.deletions(store) if not wanted.isdisjoint(lying_aside(gone.files)))
