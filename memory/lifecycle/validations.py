"""Judges memories, and promotes well-judged ones to critical (features F17 and M2).

A judgement changes confidence, the number of validations and the memory strength in one transaction that begins with
the write lock: judgements given concurrently by several processes are never lost, and a killed one leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import archival, confidence, judging
from speckit_memory.memory.lifecycle.reviews import NOT_USEFUL, USEFUL, Review, review, stability
from speckit_memory.memory.lifecycle.scheduler import interval
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord, Promotion, Tier
from speckit_memory.memory.store.tables.graph import edge_uses
from speckit_memory.memory.store.tables.memories import judgements, promotions
from speckit_memory.memory.store.tables.memories.judgements import Judgement
from speckit_memory.memory.store.writing.writer import set_attribute


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The state of a memory after a judgement or a promotion. `confidence` is in [0, 1]."""

    id: int
    key: str
    tier: Tier
    confidence: float
    validation_count: int
    eligible: bool
    """Whether it may be promoted to critical now."""
    promotion: Promotion | None
    kept_days: float
    """Days after its last review until its retrievability falls to 90 %, unless its tier does not decay."""
    restored: bool = False
    """Whether it was archived and the judgement restored it."""


@dataclass(frozen=True, slots=True)
class UndoneJudgements:
    """Judgements and promotions that were undone, the promotions that became invalid without them, and the present
    state of their memories."""

    undone: tuple[Judgement, ...]
    followed: tuple[Judgement, ...] = ()
    memories: tuple[ValidationResult, ...] = ()


def validate(
    database: Database, name: int | str, useful: bool, *, promote: bool, now: float, session: str = ""
) -> ValidationResult:
    """Record that a memory was useful or not, and promote it to critical if requested.

    An archived memory that was useful is restored (feature M5).

    Args:
        database: The store.
        name: Id or key of the memory.
        useful: The judgement.
        promote: Whether to promote the memory afterwards.
        now: The present time in epoch seconds.
        session: The session that judges, "" if unknown.

    Raises:
        SpeckitError: E080 for an unknown memory; E082 if it may not be promoted, in which case nothing is recorded.
    """
    with database.write() as txn:
        memory = reader.get_memory(txn.connection, name)
        if promote:
            _require_promotable(memory, useful)
        before = judgements.regard(txn.connection, memory.id)
        set_attribute(txn, "confidence", {memory.id: confidence.judged_confidence(memory.confidence, useful)})
        set_attribute(txn, "validation_count", {memory.id: memory.validation_count + 1})
        review(txn, {memory.id: Review(USEFUL if useful else NOT_USEFUL, now)})
        after = judgements.regard(txn.connection, memory.id)
        if before is not None and after is not None:
            said: judgements.Kind = "useful" if useful else "not useful"
            judgements.record(txn, memory.id, said, now, before, after, session=session)
        if useful:
            edge_uses.note_used(txn, [memory.id], now)
        if promote:
            promotions.promote(txn, memory.id, now, session)
        restored = useful and archival.take_back(txn, memory.id, now)
        return replace(_standing(txn, name), restored=restored)


def promote(database: Database, name: int | str, *, now: float, session: str = "") -> ValidationResult:
    """Promote a memory to critical. No promotion happens without such a call.

    Args:
        database: The store.
        name: Id or key of the memory.
        now: The present time in epoch seconds.
        session: The session that promotes, "" if unknown.

    Raises:
        SpeckitError: E080 for an unknown memory; E082 if its judgements do not suffice, or its document sets its tier.
    """
    with database.write() as txn:
        memory = reader.get_memory(txn.connection, name)
        _require_promotable(memory, None)
        promotions.promote(txn, memory.id, now, session)
        return _standing(txn, name)


def undo(database: Database, numbers: Sequence[int], *, now: float) -> UndoneJudgements:
    """Undo judgements and promotions by their numbers, all or none. Raises E080, E030."""
    with database.write() as txn:
        return _undone(txn, numbers, now)


def undo_all(database: Database, *, name: int | str | None = None, session: str = "", now: float) -> UndoneJudgements:
    """Undo all recorded judgements and promotions of a memory, of a session, or of a memory by a session.

    Args:
        database: The store.
        name: Id or key of the memory; None for all memories.
        session: The session; "" for all sessions.
        now: The present time in epoch seconds.

    Raises:
        SpeckitError: E080 for an unknown memory.
    """
    with database.write() as txn:
        memory = None if name is None else reader.get_memory(txn.connection, name).id
        given = judgements.judgements(txn.connection, memory=memory, session=session)
        return _undone(txn, [one.id for one in given if one.undone_at is None], now)


def _undone(txn: Transaction, numbers: Sequence[int], now: float) -> UndoneJudgements:
    gone = judging.undo(txn, numbers, now)
    memories = dict.fromkeys(one.memory for one in gone.undone)
    return UndoneJudgements(*gone, tuple(_standing(txn, memory) for memory in memories))


def _require_promotable(memory: MemoryRecord, useful: bool | None) -> None:
    """Raise E082 unless a stored memory may be promoted, counting one more judgement unless `useful` is None.

    The message shows stored values: a judgement given with a rejected promotion leaves no trace.
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
        trust, validations = confidence.judged_confidence(trust, useful), validations + 1
    if not confidence.promotable(trust, validations):
        even = "" if useful is None else ", too little even with this judgement"
        raise SpeckitError(
            "E082",
            f"'{memory.key}' has confidence {memory.confidence:g} of {confidence.PROMOTABLE:g} and "
            f"{memory.validation_count} of {confidence.VALIDATIONS} validations{even}; nothing was recorded",
            actions=() if useful is None else ("judge it without asking for promotion, so that the judgement counts",),
        )


def _standing(txn: Transaction, name: int | str) -> ValidationResult:
    memory = reader.get_memory(txn.connection, name)
    return ValidationResult(
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
