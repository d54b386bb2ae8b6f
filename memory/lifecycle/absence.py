"""Memories whose files have been away for so long that they are given up (feature I8)."""

from __future__ import annotations

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links

DAY = 86_400.0
BATCH = 50
"""Memories of one transaction."""


def over(connection: Connection, now: float, days: float) -> int:
    """How many memories have been absent for more than so many days at `now` (epoch seconds)."""
    return absences.count(connection, now - days * DAY)


def delete_over(txn: Transaction, now: float, days: float) -> int:
    """Deletes up to `BATCH` of them for good; returns how many."""
    deleted = writer.delete_memories(txn, absences.oldest(txn.connection, now - days * DAY, BATCH))
    if deleted:
        resolve_links(txn, now)
    return deleted
