"""Where near duplicates must be counted anew, what they are counted by, and the counts (feature F9).

Whoever changes what memories are compared by marks their folders in the same transaction. So a count that was
interrupted, or that another process is still at, is never lost: the mark stays until a count of the folder as it then
was is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories.absences import PRESENT

_TEXT = (
    "title || coalesce((SELECT ' ' || group_concat(phrase, ' ') FROM triggers "
    "WHERE memory_id = memories.id AND source = 'authored'), '')"
)


@dataclass(frozen=True, slots=True)
class Siblings:
    """The memories of one folder after the change number `mark`; the tuples are aligned, by ascending id.

    `texts` are what they are compared by, `counts` the stored numbers of near duplicates.
    """

    folder: str
    mark: int
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    counts: tuple[float, ...]


class Compared(NamedTuple):
    """What decides about the near duplicates of a memory: its folder, and its title with authored trigger phrases."""

    folder: str
    text: str


def compared(connection: apsw.Connection, memory_id: int) -> Compared | None:
    """What a memory is compared by; None when it is not stored."""
    found = rows(connection, f"SELECT folder, {_TEXT} FROM memories WHERE id = ?", (memory_id,))
    return Compared(*found[0]) if found else None


def mark_uncounted(txn: Transaction, folders: Iterable[str]) -> None:
    """Notes that members of these folders came, went or are compared by something else since the latest change."""
    txn.connection.executemany(
        "INSERT INTO uncounted_folders VALUES (?, ?) ON CONFLICT DO UPDATE SET mark = excluded.mark",
        [(folder, changes.latest(txn.connection)) for folder in folders],
    )


def uncounted_folders(connection: apsw.Connection) -> list[str]:
    """The marked folders, by name."""
    return [folder for (folder,) in rows(connection, "SELECT folder FROM uncounted_folders ORDER BY folder")]


def siblings(database: Database, folder: str) -> Siblings | None:
    """The members of a marked folder; None when it is not marked (any more)."""
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
    """Stores the number of near duplicates of each sibling and takes the folder's mark away.

    Does nothing when the folder has changed since, or was counted by somebody else: then the last to come counts.
    """
    txn.connection.execute(
        "DELETE FROM uncounted_folders WHERE folder = ? AND mark = ?", (counted.folder, counted.mark)
    )
    if not txn.connection.changes():
        return
    known = dict(zip(counted.ids, counted.counts, strict=True))
    changed = {memory: count for memory, count in zip(known, counts, strict=True) if count != known[memory]}
    txn.connection.executemany(
        "UPDATE memories SET interference = ? WHERE id = ?", [(count, memory) for memory, count in changed.items()]
    )
    changes.record(txn, changed, "attributes")
