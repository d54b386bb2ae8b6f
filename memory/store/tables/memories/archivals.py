"""Archived memories: searches do not find them, but nothing of them is lost (feature M5).

An archived memory counts as expired: `expires_at` is the time of its archival, and its former value is kept here. So
the memory leaves every index at once, as all of them exclude expired memories, and returns to all of them unchanged,
with its vectors, words, links and history.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import EXPIRES
from speckit_memory.memory.store.tables import changes

Reason = Literal["unused", "expired"]
"""The reason for which a memory is archived."""
Away = Reason | Literal["absent"]
"""The reason for which searches do not find a memory; for "absent" see `absences`."""


class ArchivedMemory(NamedTuple):
    """An archived memory, with the reason and the time of its archival (epoch seconds)."""

    memory: int
    key: str
    title: str
    reason: Reason
    archived_at: float


def archive(txn: Transaction, memories: Sequence[int], reason: Reason, now: float) -> None:
    """Archives stored memories that are not archived.

    Args:
        txn: The transaction.
        memories: Ids of the memories.
        reason: "unused", or "expired" for memories that have expired, which keep their `expires_at`.
        now: The time of archival, in epoch seconds.
    """
    # the expiry is saved here before the UPDATE below replaces it
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
    """Restores an archived memory. The record of its restoration stays, and the memory's age counts from then on.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        now: The time of restoration, in epoch seconds.
        life: Seconds until a memory that had expired expires again.

    Returns:
        False when the memory is not archived.
    """
    changed = txn.connection.execute(
        "UPDATE archivals SET restored_at = ?2 WHERE memory_id = ?1 AND restored_at IS NULL "
        # The former expiry would make an expired memory expire again at once: it gets a new one.
        "RETURNING iif(reason = 'expired', ?2 + ?3, expired_at)",
        (memory, now, life),
    ).fetchall()
    for (expires_at,) in changed:
        txn.connection.execute("UPDATE memories SET expires_at = ?2 WHERE id = ?1", (memory, expires_at))
        changes.record(txn, [memory], "attributes")
    return bool(changed)


def lift(txn: Transaction, memory: int) -> None:
    """Restores a memory whose document has changed, unless it had expired. The caller logs the change."""
    txn.connection.execute(
        "UPDATE memories SET expires_at = a.expired_at FROM archivals a WHERE memories.id = ?1 AND a.memory_id = ?1 "
        "AND a.reason = 'unused' AND a.restored_at IS NULL",
        (memory,),
    )
    txn.connection.execute("DELETE FROM archivals WHERE memory_id = ?1 AND reason = 'unused'", (memory,))


def declared_end(txn: Transaction, memory: int) -> str | None:
    """The expiry that the stored document of a memory declares, as text from its front matter."""
    extra: str | None = value(txn.connection, "SELECT extra FROM texts WHERE memory_id = ?", (memory,))
    end = json.loads(extra or "{}").get(EXPIRES)
    return None if end is None else str(end)


def end_at(txn: Transaction, memory: int, end: float | None) -> None:
    """Sets a memory's expiry to the one that its document declares now (None for no expiry) and ends any archival: an
    expired memory is found again until then. The caller logs the change."""
    txn.connection.execute("DELETE FROM archivals WHERE memory_id = ?", (memory,))
    txn.connection.execute("UPDATE memories SET expires_at = ? WHERE id = ?", (end, memory))


def reason_of(connection: Connection, memory: int) -> tuple[Reason, float] | None:
    """The reason and time (epoch seconds) of a memory's archival; None when it is not archived."""
    found = rows(
        connection,
        "SELECT reason, archived_at FROM archivals WHERE memory_id = ? AND restored_at IS NULL",
        (memory,),
    )
    return found[0] if found else None


def archived_memories(connection: Connection) -> list[ArchivedMemory]:
    """All archived memories, by key."""
    found = rows(
        connection,
        "SELECT m.id, m.key, m.title, a.reason, a.archived_at FROM archivals a JOIN memories m ON m.id = a.memory_id "
        "WHERE a.restored_at IS NULL ORDER BY m.key",
    )
    return [ArchivedMemory(*row) for row in found]
