"""Judging memories, and making critical what was judged well enough (features F17 and M2).

A judgement moves confidence, the count of validations and how well the memory is kept together, in one transaction that
begins by taking the write lock: of judgements that several processes give at once, none is lost, and a killed one
leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import confidence
from speckit_memory.memory.lifecycle.reviews import NOT_USEFUL, USEFUL, Review, review, stability
from speckit_memory.memory.lifecycle.scheduler import interval
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord, Promotion, Tier
from speckit_memory.memory.store.tables import edge_uses, promotions
from speckit_memory.memory.store.writing.writer import set_attribute


@dataclass(frozen=True, slots=True)
class Validated:
    """How a memory stands after a judgement or a promotion. `confidence` is in [0, 1]."""

    id: int
    key: str
    tier: Tier
    confidence: float
    validation_count: int
    eligible: bool
    """Whether it may be made critical now."""
    promotion: Promotion | None
    kept_days: float
    """Days after its last review until its retrievability has fallen to 90 %, unless its tier lasts."""


def validate(database: Database, name: int | str, useful: bool, *, promote: bool, now: float) -> Validated:
    """Notes that the memory with this id or key was useful, or was not, and then makes it critical when asked to.

    `now` is in epoch seconds. Raises E080, and E082 when it may not be made critical; nothing is noted then.
    """
    with database.write() as txn:
        memory = reader.get_memory(txn.connection, name)
        if promote:
            _require_promotable(memory, useful)
        set_attribute(txn, "confidence", {memory.id: confidence.judged(memory.confidence, useful)})
        set_attribute(txn, "validation_count", {memory.id: memory.validation_count + 1})
        review(txn, {memory.id: Review(USEFUL if useful else NOT_USEFUL, now)})
        if useful:
            edge_uses.note_used(txn, [memory.id], now)
        if promote:
            promotions.promote(txn, memory.id, now)
        return _standing(txn, name)


def promote(database: Database, name: int | str, *, now: float) -> Validated:
    """Makes the memory with this id or key critical from `now` (epoch seconds) on.

    Nothing else promotes: every change of a tier has a call behind it. Raises E080, and E082 when readers have not said
    enough for it, or its document has settled its tier.
    """
    with database.write() as txn:
        memory = reader.get_memory(txn.connection, name)
        _require_promotable(memory, None)
        promotions.promote(txn, memory.id, now)
        return _standing(txn, name)


def _require_promotable(memory: MemoryRecord, useful: bool | None) -> None:
    """Raises E082 unless a stored memory may be made critical, with one more judgement counted unless it is None.

    The message holds what is stored: a judgement that comes with a refused promotion leaves no trace.
    """
    if memory.tier not in promotions.PROMOTED_FROM:
        raise SpeckitError(
            "E082",
            f"'{memory.key}' is {memory.tier}; nothing was recorded",
            hint=f"Only {', '.join(promotions.PROMOTED_FROM)} memories are promoted.",
            actions=("judge it without asking for promotion",),
        )
    trust, validations = memory.confidence, memory.validation_count
    if useful is not None:
        trust, validations = confidence.judged(trust, useful), validations + 1
    if not confidence.promotable(trust, validations):
        even = "" if useful is None else ", too little even with this judgement"
        raise SpeckitError(
            "E082",
            f"'{memory.key}' has confidence {memory.confidence:g} of {confidence.PROMOTABLE:g} and "
            f"{memory.validation_count} of {confidence.VALIDATIONS} validations{even}; nothing was recorded",
            actions=() if useful is None else ("judge it without asking for promotion, so that the judgement counts",),
        )


def _standing(txn: Transaction, name: int | str) -> Validated:
    memory = reader.get_memory(txn.connection, name)
    return Validated(
        id=memory.id,
        key=memory.key,
        tier=memory.tier,
        confidence=memory.confidence,
        validation_count=memory.validation_count,
        eligible=memory.tier in promotions.PROMOTED_FROM
        and confidence.promotable(memory.confidence, memory.validation_count),
        promotion=memory.promotion,
        kept_days=round(interval(stability(txn.connection, memory.id)), 6),
    )
