"""Deletions, kept with all rows of the deleted memories so that each can be undone (features T9 and T11).

They are stored in the folder `<store file>.deleted`, each as a checkpoint of the deleted memories, next to a folder
with the files that were deleted with them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.checkpoints import creation, restoring
from speckit_memory.memory.store.checkpoints.creation import RetentionLimits
from speckit_memory.memory.store.checkpoints.folder import Checkpoint, Folder
from speckit_memory.memory.store.checkpoints.restoring import RestoreReport
from speckit_memory.memory.store.file.connection import Connection, Database

ENDING = ".deleted"
LIMITS = RetentionLimits(keep=1000, days=90)
"""Number of deletions that can be undone, and for how many days."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """The memories deleted at once. `memories` are keys by id, `why` is the request."""

    name: str
    at: float
    why: str
    memories: Mapping[int, str]
    files: Path
    """The folder with their files; may not exist."""
    kept: Checkpoint


def shelf(store: Path) -> Folder:
    """The folder of a store's deletions."""
    return Folder(store, ENDING)


def keep(database: Database, memories: Mapping[int, str], why: str, *, now: float) -> Deletion:
    """Saves the rows of memories that are about to be deleted, and drops deletions beyond `LIMITS`.

    Args:
        database: The store.
        memories: Keys of the memories by id.
        why: The request that deletes them, for readers.
        now: The time, in epoch seconds.

    Returns:
        The saved deletion.

    Raises:
        SpeckitError: E062 when it cannot be written; nothing is left behind then.
    """
    where = shelf(database.path)
    made = creation.make(
        database,
        # sortable by time, and unique even for two deletions within a second
        f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{token_hex(3)}",
        now=now,
        limits=LIMITS,
        metadata={"why": why, "memories": {str(each): key for each, key in memories.items()}},
        chosen=tuple(memories),
        shelf=where,
    )
    for dropped in made.dropped:
        shutil.rmtree(where.aside(dropped), ignore_errors=True)
    return _deletion(where, made.checkpoint)


def deletions(store: Path) -> list[Deletion]:
    """The deletions that can be undone, latest first."""
    where = shelf(store)
    return [_deletion(where, one) for one in where.all() if not one.problem]


def deletion(store: Path, name: str) -> Deletion:
    """The deletion with this name. Raises E106."""
    found = {one.name: one for one in deletions(store)}
    if name not in found:
        hint = nearest(name, list(found)) if found else "There is none."
        raise SpeckitError("E106", f"there is no deletion '{name}' that could be undone", hint=hint)
    return found[name]


def bring_back(database: Database, gone: Deletion, *, now: float) -> RestoreReport:
    """Restores the missing memories of a deletion under their former ids. Raises E061 with nothing changed.

    Memories that exist are left unchanged: a process killed while deleting or undoing may not have deleted them, or may
    have restored them already, and they may have changed since.
    """
    return restoring.restore(database, gone.kept, replace=False, now=now, only_missing=True, shelf=shelf(database.path))


def there(connection: Connection, gone: Deletion) -> frozenset[int]:
    """Ids of the memories of a deletion that are in the store."""
    return restoring.there(connection, list(gone.memories))


def drop(store: Path, gone: Deletion) -> None:
    """Removes a saved deletion; files saved with it stay. Raises E062."""
    where = shelf(store)
    with where.changing():
        where.remove(gone.kept)


def _deletion(where: Folder, kept: Checkpoint) -> Deletion:
    told = kept.metadata.get("memories", {})
    memories = {int(each): str(key) for each, key in told.items()}
    why = str(kept.metadata.get("why", ""))
    return Deletion(kept.name, kept.created_at, why, memories, where.aside(kept.name), kept)
