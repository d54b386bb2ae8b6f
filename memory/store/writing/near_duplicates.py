"""Counts of near duplicates per folder, and marks for folders that must be recounted (feature F9).

Every change of the compared texts marks the folder in the same transaction. A mark is removed only with a count of the
folder as of that mark, so that interrupted and concurrent counts are never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories.absences import PRESENT

_TEXT = (
    "title || coalesce((SELECT ' ' || group_concat(phrase, ' ') FROM triggers "
    "WHERE memory_id = memories.id AND source = 'authored'), '')"
)


@dataclass(frozen=True, slots=True)
class Siblings:
    """The memories of one folder as of the change number `mark`; the tuples are parallel, by ascending id.

    `texts` are compared with each other, `counts` are the stored numbers of near duplicates.
    """

    folder: str
    mark: int
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    counts: tuple[float, ...]


class DuplicateCandidate(NamedTuple):
    """The inputs for a memory's near duplicates: its folder, and its title with authored trigger phrases."""

    folder: str
    text: str


def duplicate_inputs(connection: Connection, memory_id: int) -> DuplicateCandidate | None:
    """The inputs for a memory's near duplicates; None when it is not stored."""
    found = rows(connection, f"SELECT folder, {_TEXT} FROM memories WHERE id = ?", (memory_id,))
    return DuplicateCandidate(*found[0]) if found else None


def folders_of(connection: Connection, memories: Iterable[int]) -> set[str]:
    """The folders of memories."""
    sql = "SELECT DISTINCT folder FROM memories WHERE id IN (SELECT value FROM carray(?))"
    return {folder for (folder,) in rows(connection, sql, (integers(list(memories)),))}


def mark_uncounted(txn: Transaction, folders: Iterable[str]) -> None:
    """Marks folders, with the number of the latest change, since members or their compared texts changed."""
    txn.connection.executemany(
        "INSERT INTO uncounted_folders VALUES (?, ?) ON CONFLICT DO UPDATE SET mark = excluded.mark",
        [(folder, changes.latest(txn.connection)) for folder in folders],
    )


def uncounted_folders(connection: Connection) -> list[str]:
    """The marked folders, by name."""
    return [folder for (folder,) in rows(connection, "SELECT folder FROM uncounted_folders ORDER BY folder")]


def siblings(database: Database, folder: str) -> Siblings | None:
    """The members of a marked folder; None when it is not (or no longer) marked."""
    with database.snapshot_read() as connection:
        mark = value(connection, "SELECT mark FROM uncounted_folders WHERE folder = ?", (folder,))
        if mark is None:
            return None
        found = rows(
            connection,
            f"SELECT id, {_TEXT}, interference FROM memories WHERE folder = ? AND {PRESENT} ORDER BY id",
            (folder,),
        )
    ids, texts, counts = zip(*found, strict=True) if found else ((), (), ())
    return Siblings(folder, mark, ids, texts, counts)


def store_counts(txn: Transaction, counted: Siblings, counts: Sequence[int]) -> None:
    """Stores the number of near duplicates of each sibling and removes the folder's mark.

    Does nothing when the folder has changed since, or another process has counted it: then that count is the valid one.
    """
    txn.connection.execute(
        "DELETE FROM uncounted_folders WHERE folder = ? AND mark = ?", (counted.folder, counted.mark)
    )
    # Compare and swap on the mark: a later change of the folder has set another one.
    if not txn.connection.changes():
        return
    known = dict(zip(counted.ids, counted.counts, strict=True))
    changed = {memory: count for memory, count in zip(known, counts, strict=True) if count != known[memory]}
    txn.connection.executemany(
        "UPDATE memories SET interference = ? WHERE id = ?", [(count, memory) for memory, count in changed.items()]
    )
    changes.record(txn, changed, "attributes")
