"""Memories that were deleted, kept with all their rows so that each deletion can be undone (features T9 and T11).

They lie in the folder `<store file>.deleted`, each as a checkpoint of those memories alone, beside a folder with the
files that went with them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.checkpoints import making, restoring
from speckit_memory.memory.store.checkpoints.folder import Checkpoint, Folder
from speckit_memory.memory.store.checkpoints.making import Limits
from speckit_memory.memory.store.checkpoints.restoring import Restored
from speckit_memory.memory.store.file.connection import Connection, Database

ENDING = ".deleted"
LIMITS = Limits(keep=1000, days=90)
"""How many deletions can be undone, and for how long."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """What was deleted at once. `memories` are keys by id, `why` is what was asked for."""

    name: str
    at: float
    why: str
    memories: Mapping[int, str]
    files: Path
    """The folder with their files, which need not exist."""
    kept: Checkpoint


def shelf(store: Path) -> Folder:
    """Where the deletions of a store are kept."""
    return Folder(store, ENDING)


def keep(database: Database, memories: Mapping[int, str], why: str, *, now: float) -> Deletion:
    """Keeps the rows of memories that are about to be deleted, and drops what is beyond `LIMITS`.

    Raises E062 when they cannot be written; nothing is left behind then.
    """
    where = shelf(database.path)
    made = making.make(
        database,
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
    """Those that can be undone, the latest first."""
    where = shelf(store)
    return [_deletion(where, one) for one in where.all() if not one.problem]


def deletion(store: Path, name: str) -> Deletion:
    """The deletion of this name. Raises E106."""
    found = {one.name: one for one in deletions(store)}
    if name not in found:
        hint = nearest(name, list(found)) if found else "There is none."
        raise SpeckitError("E106", f"there is no deletion '{name}' that could be undone", hint=hint)
    return found[name]


def bring_back(database: Database, gone: Deletion, *, now: float) -> Restored:
    """Makes those rows again that are not there, under the ids that they had. Raises E061 with nothing changed.

    Memories that are there stay as they are: who was killed while deleting or undoing had not taken them, or had
    brought them back, and whatever was done since is done to them.
    """
    return restoring.restore(database, gone.kept, replace=False, now=now, only_missing=True, shelf=shelf(database.path))


def there(connection: Connection, gone: Deletion) -> frozenset[int]:
    """The memories of a deletion that are in the store."""
    return restoring.there(connection, list(gone.memories))


def drop(store: Path, gone: Deletion) -> None:
    """Removes what was kept; files that still lie aside stay. Raises E062."""
    where = shelf(store)
    with where.changing():
        where.remove(gone.kept)


def _deletion(where: Folder, kept: Checkpoint) -> Deletion:
    told = kept.metadata.get("memories", {})
    memories = {int(each): str(key) for each, key in told.items()}
    why = str(kept.metadata.get("why", ""))
    return Deletion(kept.name, kept.created_at, why, memories, where.aside(kept.name), kept)
