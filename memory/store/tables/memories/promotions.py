"""Promotions: memories made critical because of readers' judgements, and the evidence (feature F17).

A promotion belongs to the memory, not to its document: it survives a new version of the file. The tier that the file
declares is recorded too, so that every tier that differs from its file can be explained.
"""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import Promotion, Tier
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories import judgements

PROMOTED_FROM = (Tier.IMPORTANT, Tier.NORMAL, Tier.TEMPORARY)
"""Tiers that a promotion raises. The others are as high already, or say that the memory shall not be served."""


def promote(txn: Transaction, memory_id: int, now: float, session: str = "") -> None:
    """Makes a stored memory critical.

    Args:
        txn: The transaction.
        memory_id: Id of a memory whose tier is in `PROMOTED_FROM`.
        now: The time, in epoch seconds.
        session: The session that asked for it; "" where unknown.
    """
    tier = value(txn.connection, "SELECT tier FROM memories WHERE id = ?", (memory_id,))
    if (stands := judgements.regard(txn.connection, memory_id)) is not None:
        judgements.record(txn, memory_id, "promoted", now, stands, stands, session=session, declared=tier)
    txn.connection.execute(
        "INSERT INTO promotions (memory_id, from_tier, confidence, validation_count, promoted_at) "
        "SELECT id, tier, confidence, validation_count, ?2 FROM memories WHERE id = ?1",
        (memory_id, now),
    )
    txn.connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (str(Tier.CRITICAL), memory_id))
    changes.record(txn, [memory_id], "put")  # not "attributes": indexes of documents depend on the tier


def take_back(txn: Transaction, memory_id: int) -> None:
    """Undoes a promotion: the memory gets the tier that its document declares."""
    tier = judgements.declared_tier(txn.connection, memory_id)
    txn.connection.execute("DELETE FROM promotions WHERE memory_id = ?", (memory_id,))
    txn.connection.execute("UPDATE memories SET tier = coalesce(?, tier) WHERE id = ?", (tier, memory_id))
    changes.record(txn, [memory_id], "put")


def settle(txn: Transaction, memory_id: int, stored: str, declared: Tier) -> bool:
    """Brings the stored tier of a known memory in line with its document and promotion. A promotion older than the
    table of judgements only knows the tier that was declared then; this updates it.

    Args:
        txn: The transaction.
        memory_id: Id of the memory.
        stored: The tier in the store.
        declared: The tier that the document declares now.

    Returns:
        Whether the stored tier changed.
    """
    if stored == declared != Tier.CRITICAL:
        return False  # there is no promotion
    judgements.declare(txn, memory_id, declared)
    tier = tier_in_force(txn.connection, memory_id, declared)
    if tier == stored:
        return False
    txn.connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (str(tier), memory_id))
    changes.record(txn, [memory_id], "put")
    return True


def tier_in_force(connection: Connection, memory_id: int, declared: Tier) -> Tier:
    """The tier in force of a memory whose document declares `declared`."""
    if declared not in PROMOTED_FROM:
        return declared
    promoted = value(connection, "SELECT 1 FROM promotions WHERE memory_id = ?", (memory_id,)) is not None
    return Tier.CRITICAL if promoted else declared


def promotions(connection: Connection, ids: Sequence[int]) -> dict[int, Promotion]:
    """The promotions among these memories, by memory id."""
    found = rows(
        connection,
        "SELECT memory_id, from_tier, confidence, validation_count, promoted_at FROM promotions "
        "WHERE memory_id IN (SELECT value FROM carray(?))",
        (integers(ids),),
    )
    return {memory_id: Promotion(Tier(tier), *evidence) for memory_id, tier, *evidence in found}
