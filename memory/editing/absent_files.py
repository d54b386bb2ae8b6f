"""Memories whose files are gone, and where those lie that a deletion moved aside (feature M14)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from speckit_memory.memory.editing.aside import lying_aside
from speckit_memory.memory.indexing.workspace_sources import WorkspaceSources, may_exist
from speckit_memory.memory.store.checkpoints import deletions
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading.reader import known_files


def without_file(database: Database, root: Path, ids: Collection[int]) -> tuple[str, ...]:
    """The keys of those memories that came from a file of this workspace and have none now, in order."""
    connection, wanted = database.reader(), frozenset(ids)
    elsewhere = WorkspaceSources(database, root).elsewhere(connection)
    return tuple(
        key
        for key, known in known_files(connection).items()
        if known.id in wanted and known.mtime_ns is not None and not may_exist(root / key) and not elsewhere(key)
    )


def kept_by(store: Path, keys: Collection[str]) -> tuple[str, ...]:
    """The names of the deletions that hold files with these keys, the latest first."""
    wanted = frozenset(keys)
    return tuple(gone.name for gone in deletions.deletions(store) if not wanted.isdisjoint(lying_aside(gone.files)))
