"""Deletes memories whose files have been absent for too long (feature I8)."""

from __future__ import annotations

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links

DAY = 86_400.0
BATCH = 50
"""Memories per transaction."""


def count_expired(connection: Connection, now: float, days: float) -> int:
    """Number of memories that have been absent for more than `days` at `now` (epoch seconds)."""
    return absences.count(connection, now - days * DAY)


def delete_over(txn: Transaction, now: float, days: float) -> int:
    """Delete up to `BATCH` of these memories for good; returns their number."""
    deleted = writer.delete_memories(txn, absences.oldest(txn.connection, now - days * DAY, BATCH))
    if deleted:
        resolve_links(txn, now)
    return deleted
