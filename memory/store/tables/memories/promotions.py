"""Memories that were made critical for what readers found, and on what evidence (feature F17).

A promotion belongs to the memory, not to its document: it survives a new version of the file. Beside it stays on record
which tier the file had declared, so that every tier that no file asked for can be accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import Promotion, Tier
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories import judgements

PROMOTED_FROM = (Tier.IMPORTANT, Tier.NORMAL, Tier.TEMPORARY)
"""Tiers that a promotion raises. The others are the author's word: as high already, or not to be served at all."""


def promote(txn: Transaction, memory_id: int, now: float, session: str = "") -> None:
    """Makes a stored memory of a tier in `PROMOTED_FROM` critical from `now` (epoch seconds) on, as a session asked."""
    tier = value(txn.connection, "SELECT tier FROM memories WHERE id = ?", (memory_id,))
    if (stands := judgements.regard(txn.connection, memory_id)) is not None:
        judgements.record(txn, memory_id, "promoted", now, stands, stands, session=session, declared=tier)
    txn.connection.execute(
        "INSERT INTO promotions (memory_id, from_tier, confidence, validation_count, promoted_at) "
        "SELECT id, tier, confidence, validation_count, ?2 FROM memories WHERE id = ?1",
        (memory_id, now),
    )
    txn.connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (str(Tier.CRITICAL), memory_id))
    changes.record(txn, [memory_id], "put")  # a tier is a fact of documents, which more is derived from than attributes


def take_back(txn: Transaction, memory_id: int) -> None:
    """Gives a memory the tier that its document declares, and no other."""
    tier = judgements.declared(txn.connection, memory_id)
    txn.connection.execute("DELETE FROM promotions WHERE memory_id = ?", (memory_id,))
    txn.connection.execute("UPDATE memories SET tier = coalesce(?, tier) WHERE id = ?", (tier, memory_id))
    changes.record(txn, [memory_id], "put")


def settle(txn: Transaction, memory_id: int, stored: str, declared: Tier) -> bool:
    """Sets right what is `stored` of the tier of a memory whose document, known already, declares this one; whether
    that was another tier. A promotion of before judgements were kept knows only which tier was declared then."""
    if stored == declared != Tier.CRITICAL:
        return False  # nobody has promoted it
    judgements.declare(txn, memory_id, declared)
    tier = tier_in_force(txn.connection, memory_id, declared)
    if tier == stored:
        return False
    txn.connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (str(tier), memory_id))
    changes.record(txn, [memory_id], "put")
    return True


def tier_in_force(connection: apsw.Connection, memory_id: int, declared: Tier) -> Tier:
    """The tier of a memory whose document declares this one."""
    if declared not in PROMOTED_FROM:
        return declared
    promoted = value(connection, "SELECT 1 FROM promotions WHERE memory_id = ?", (memory_id,)) is not None
    return Tier.CRITICAL if promoted else declared


def promotions(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, Promotion]:
    """The promotions among these memories, by memory id."""
    found = rows(
        connection,
        "SELECT memory_id, from_tier, confidence, validation_count, promoted_at FROM promotions "
        "WHERE memory_id IN (SELECT value FROM carray(?))",
        (integers(ids),),
    )
    return {memory_id: Promotion(Tier(tier), *evidence) for memory_id, tier, *evidence in found}
