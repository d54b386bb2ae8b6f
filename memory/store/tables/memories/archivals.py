"""Memories that were put away: no search finds them, and nothing of them is lost (feature M5).

An archived memory is one that has expired: `expires_at` is the time of its archival, and what stood there before is
kept here. So it leaves every index at once, as all of them answer within the scope of what has not expired, and comes
back to all of them as it was, with its vectors, words, links and history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import EXPIRES
from speckit_memory.memory.store.tables import changes

Reason = Literal["unused", "expired"]
"""Why a memory is archived."""
Away = Reason | Literal["absent"]
"""Why no search finds a memory: see `absences`."""


class Archived(NamedTuple):
    """A memory that is put away: why, and since when (epoch seconds)."""

    memory: int
    key: str
    title: str
    reason: Reason
    archived_at: float


def archive(txn: Transaction, memories: Sequence[int], reason: Reason, now: float) -> None:
    """Puts stored memories away that are not; what has `expired` keeps the time at which it did."""
    txn.connection.executemany(
        "INSERT OR REPLACE INTO archivals (memory_id, reason, archived_at, expired_at) "
        "SELECT id, ?2, ?3, expires_at FROM memories WHERE id = ?1",
        [(memory, reason, now) for memory in memories],
    )
    if reason == "unused":
        txn.connection.execute(
            "UPDATE memories SET expires_at = ?2 WHERE id IN (SELECT value FROM carray(?1))", (integers(memories), now)
        )
        changes.record(txn, memories, "attributes")


def restore(txn: Transaction, memory: int, now: float, life: float) -> bool:
    """Takes a memory back at `now`; one that had expired lives `life` more seconds. False when it is not put away.

    That it was restored stays on record: it counts as no older than that from then on.
    """
    changed = txn.connection.execute(
        "UPDATE archivals SET restored_at = ?2 WHERE memory_id = ?1 AND restored_at IS NULL "
        "RETURNING iif(reason = 'expired', ?2 + ?3, expired_at)",
        (memory, now, life),
    ).fetchall()
    for (expires_at,) in changed:
        txn.connection.execute("UPDATE memories SET expires_at = ?2 WHERE id = ?1", (memory, expires_at))
        changes.record(txn, [memory], "attributes")
    return bool(changed)


def lift(txn: Transaction, memory: int) -> None:
    """Takes a memory back whose document says something else now, unless it had expired. The caller logs the change."""
    txn.connection.execute(
        "UPDATE memories SET expires_at = a.expired_at FROM archivals a WHERE memories.id = ?1 AND a.memory_id = ?1 "
        "AND a.reason = 'unused' AND a.restored_at IS NULL",
        (memory,),
    )
    txn.connection.execute("DELETE FROM archivals WHERE memory_id = ?1 AND reason = 'unused'", (memory,))


def declared_end(txn: Transaction, memory: int) -> str | None:
    """The end that the stored document of a memory declares, as it is kept among what it says besides."""
    found: str | None = value(
        txn.connection, f"SELECT extra ->> '$.{EXPIRES}' FROM texts WHERE memory_id = ?", (memory,)
    )
    return found


def end_at(txn: Transaction, memory: int, end: float | None) -> None:
    """Has a memory expire at the end that its document declares now, or not at all, whatever was before: what had
    expired is found again until then. The caller logs the change."""
    txn.connection.execute("DELETE FROM archivals WHERE memory_id = ?", (memory,))
    txn.connection.execute("UPDATE memories SET expires_at = ? WHERE id = ?", (end, memory))


def reason_of(connection: apsw.Connection, memory: int) -> tuple[Reason, float] | None:
    """Why a memory is put away and since when (epoch seconds); None when it is not."""
    found = rows(
        connection,
        "SELECT reason, archived_at FROM archivals WHERE memory_id = ? AND restored_at IS NULL",
        (memory,),
    )
    return found[0] if found else None


def archived(connection: apsw.Connection) -> list[Archived]:
    """What is put away now, by key."""
    found = rows(
        connection,
        "SELECT m.id, m.key, m.title, a.reason, a.archived_at FROM archivals a JOIN memories m ON m.id = a.memory_id "
        "WHERE a.restored_at IS NULL ORDER BY m.key",
    )
    return [Archived(*row) for row in found]
