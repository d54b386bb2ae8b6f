"""Memories whose files are not there: no search finds them, and nothing of them is lost (feature I8).

An absent memory is one that has expired: `expires_at` is before every time, and what stood there before is kept here.
So it leaves every index at once, as an archived one does, and comes back to all of them as it was. Lists and counts
leave it out by `PRESENT`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import EARLIEST

CHANGED = "presence_changed"
"""The store's fact that numbers the last change by which a memory became absent or was taken up again."""


def present(column: str) -> str:
    """SQL that holds where the memory whose id is in this column is not absent."""
    return f"{column} NOT IN (SELECT memory_id FROM absences)"


PRESENT = present("memories.id")
"""SQL for a row of `memories` whose file is there, or that never had one."""


def begin(txn: Transaction, memories: Sequence[int], now: float) -> list[int]:
    """Puts memories away whose files are not there at `now`; returns those for which that is new.
    The caller logs the change."""
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
    """Takes those of the memories back that are absent; returns them. The caller logs the change."""
    ended = rows(
        txn.connection,
        "DELETE FROM absences WHERE memory_id IN (SELECT value FROM carray(?)) RETURNING expires_at, memory_id",
        (integers(memories),),
    )
    txn.connection.executemany("UPDATE memories SET expires_at = ? WHERE id = ?", ended)
    return [memory for _, memory in ended]


def since(connection: apsw.Connection, memory: int) -> float | None:
    """Since when a memory is absent (epoch seconds); None when it is not."""
    found: float | None = value(connection, "SELECT absent_since FROM absences WHERE memory_id = ?", (memory,))
    return found


def among(connection: apsw.Connection, memories: Collection[int]) -> frozenset[int]:
    """Those of the memories that are absent."""
    chosen = integers(sorted(memories))
    found = rows(
        connection, "SELECT memory_id FROM absences WHERE memory_id IN (SELECT value FROM carray(?))", (chosen,)
    )
    return frozenset(memory for (memory,) in found)


def count(connection: apsw.Connection, before: float | None = None) -> int:
    """How many memories are absent, or have been since `before` a time (epoch seconds)."""
    condition, bindings = ("1", ()) if before is None else ("absent_since < ?", (before,))
    number: int = value(connection, f"SELECT count(*) FROM absences WHERE {condition}", bindings)
    return number


def oldest(connection: apsw.Connection, before: float, limit: int) -> list[int]:
    """Up to `limit` memories that have been absent since `before` a time (epoch seconds), the longest absent first."""
    found = rows(
        connection,
        "SELECT memory_id FROM absences WHERE absent_since < ? ORDER BY absent_since, memory_id LIMIT ?",
        (before, limit),
    )
    return [memory for (memory,) in found]


def read_again(txn: Transaction, mtime_ns: int) -> None:
    """Gives absent memories another time of modification, so that their files are read when they are back."""
    txn.connection.execute("UPDATE memories SET mtime_ns = ? WHERE id IN (SELECT memory_id FROM absences)", (mtime_ns,))
