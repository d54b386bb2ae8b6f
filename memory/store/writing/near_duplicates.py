"""Counts of near duplicates per folder, and marks for folders that must be recounted (feature F9).

Every change of the compared texts marks the folder in the same transaction. A mark is removed only with a count of the
folder as of that mark, so that interrupted and concurrent counts are never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts
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
    latest = changes.latest(txn.connection)
    txn.connection.executemany(
        "INSERT INTO uncounted_folders VALUES (?, ?) ON CONFLICT DO UPDATE SET mark = excluded.mark",
        [(folder, latest) for folder in folders],
    )


def uncounted_folders(connection: Connection) -> list[str]:
    """The marked folders, by name."""
    return [folder for (folder,) in rows(connection, "SELECT folder FROM uncounted_folders ORDER BY folder")]


def siblings(database: Database, folders: Sequence[str]) -> list[Siblings]:
    """The members of those of these folders that are (still) marked, by folder."""
    with database.snapshot_read() as connection:
        marks = _marks(connection, folders)
        found = rows(
            connection,
            f"SELECT folder, id, {_TEXT}, interference FROM memories "
            f"WHERE folder IN (SELECT value FROM carray(?)) AND {PRESENT} ORDER BY folder, id",
            (texts(marks),),
        )
    members: dict[str, list[tuple[int, str, float]]] = {folder: [] for folder in sorted(marks)}
    for folder, *member in found:
        members[folder].append(tuple(member))
    return [
        Siblings(folder, marks[folder], *(tuple(zip(*found, strict=True)) or ((), (), ())))
        for folder, found in members.items()
    ]


def store_counts(txn: Transaction, counted: Sequence[tuple[Siblings, Sequence[int]]]) -> None:
    """Stores the number of near duplicates of the siblings of each folder and removes the folders' marks.

    Does nothing for a folder that has changed since, or that another process has counted: then that count is the valid
    one.
    """
    # Compare and swap on the mark: a later change of the folder has set another one.
    marks = _marks(txn.connection, [of_folder.folder for of_folder, _ in counted])
    valid = [(of_folder, counts) for of_folder, counts in counted if marks.get(of_folder.folder) == of_folder.mark]
    txn.connection.execute(
        "DELETE FROM uncounted_folders WHERE folder IN (SELECT value FROM carray(?))",
        (texts(of_folder.folder for of_folder, _ in valid),),
    )
    changed = {
        memory: count
        for of_folder, counts in valid
        for memory, known, count in zip(of_folder.ids, of_folder.counts, counts, strict=True)
        if count != known
    }
    txn.connection.executemany(
        "UPDATE memories SET interference = ? WHERE id = ?", [(count, memory) for memory, count in changed.items()]
    )
    changes.record(txn, changed, "attributes")


def _marks(connection: Connection, folders: Iterable[str]) -> dict[str, int]:
    """The marks of those of these folders that have one."""
    marked = "SELECT folder, mark FROM uncounted_folders WHERE folder IN (SELECT value FROM carray(?))"
    return dict(rows(connection, marked, (texts(folders),)))
