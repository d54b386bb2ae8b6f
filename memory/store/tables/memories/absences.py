"""Absent memories, whose files are missing: searches do not find them, but nothing of them is lost (feature I8).

An absent memory counts as expired: `expires_at` is set before every time, and its former value is kept here. So the
memory leaves every index at once, as an archived one does, and returns to all of them unchanged. Lists and counts
exclude it by `PRESENT`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import EARLIEST

CHANGED = "presence_changed"
"""Key in `meta` of the number of the last change by which a memory became absent or present."""


def present(column: str) -> str:
    """SQL condition that the memory whose id is in this column is not absent."""
    return f"{column} NOT IN (SELECT memory_id FROM absences)"


PRESENT = present("memories.id")
"""SQL condition for rows of `memories` that are not absent."""


def begin(txn: Transaction, memories: Sequence[int], now: float) -> list[int]:
    """Marks memories as absent from `now` on; returns those that were not absent before. The caller logs the change."""
    # two statements: RETURNING tells which memories were not absent before, and only their expiry is replaced
    begun = rows(
        txn.connection,
        "INSERT INTO absences SELECT id, ?2, expires_at FROM memories WHERE id IN (SELECT value FROM carray(?1)) "
        "ON CONFLICT DO NOTHING RETURNING memory_id",
        (integers(memories), now),
    )
    ids = [memory for (memory,) in begun]
    txn.connection.executemany("UPDATE memories SET expires_at = ? WHERE id = ?", [(EARLIEST, each) for each in ids])
    return ids


def end(txn: Transaction, memories: Sequence[int]) -> list[int]:
    """Marks absent memories among these as present; returns them. The caller logs the change."""
    # RETURNING has the columns in the order in which the UPDATE binds them
    ended = rows(
        txn.connection,
        "DELETE FROM absences WHERE memory_id IN (SELECT value FROM carray(?)) RETURNING expires_at, memory_id",
        (integers(memories),),
    )
    txn.connection.executemany("UPDATE memories SET expires_at = ? WHERE id = ?", ended)
    return [memory for _, memory in ended]


def since(connection: Connection, memory: int) -> float | None:
    """The time since which a memory is absent (epoch seconds); None when it is not."""
    found: float | None = value(connection, "SELECT absent_since FROM absences WHERE memory_id = ?", (memory,))
    return found


def among(connection: Connection, memories: Collection[int]) -> frozenset[int]:
    """The absent ones of these memories."""
    chosen = integers(sorted(memories))
    found = rows(
        connection, "SELECT memory_id FROM absences WHERE memory_id IN (SELECT value FROM carray(?))", (chosen,)
    )
    return frozenset(memory for (memory,) in found)


def count(connection: Connection, before: float | None = None) -> int:
    """Number of absent memories, or of those absent since `before` this time (epoch seconds)."""
    condition, bindings = ("1", ()) if before is None else ("absent_since < ?", (before,))
    number: int = value(connection, f"SELECT count(*) FROM absences WHERE {condition}", bindings)
    return number


def oldest(connection: Connection, before: float, limit: int) -> list[int]:
    """Up to `limit` memories absent since `before` this time (epoch seconds), the longest absent first."""
    found = rows(
        connection,
        "SELECT memory_id FROM absences WHERE absent_since < ? ORDER BY absent_since, memory_id LIMIT ?",
        (before, limit),
    )
    return [memory for (memory,) in found]


def read_again(txn: Transaction, mtime_ns: int) -> None:
    """Sets the mtime of absent memories, so that their files are read again when they reappear."""
    txn.connection.execute("UPDATE memories SET mtime_ns = ? WHERE id IN (SELECT memory_id FROM absences)", (mtime_ns,))
