"""Judgements and promotions as table rows and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.memory.store.tables.memories.judgements import Judgement, ReviewState

HEADS = ("no.", "memory", "judged", "at", "session", "effect")


def cells(one: Judgement) -> tuple[str, ...]:
    """The cells of a judgement under `HEADS`."""
    from speckit_memory.server.views.rows.rows import when

    undone = f"; undone {when(one.undone_at)[:16]}" if one.undone_at is not None else ""
    return (f"#{one.id}", one.key, one.kind, when(one.at)[:16], one.session or "-", _effect(one) + undone)


def row(one: Judgement) -> dict[str, object]:
    """A judgement as plain data."""
    from speckit_memory.server.views.rows.rows import when

    return {
        "id": one.id,
        "memory": one.memory,
        "key": one.key,
        "kind": one.kind,
        "at": when(one.at),
        "session": one.session,
        "before": _regard(one.before),
        "after": _regard(one.after),
        **({"declared": one.declared} if one.kind == "promoted" else {}),
        "undone_at": None if one.undone_at is None else when(one.undone_at),
    }


def _effect(one: Judgement) -> str:
    if one.kind == "promoted":
        return f"critical instead of {one.declared}"
    before, after = one.before, one.after
    kept = (
        f", kept {before.stability:.3g} -> {after.stability:.3g} days"
        if after != before._replace(confidence=after.confidence, validations=after.validations)
        else ""
    )
    return f"confidence {before.confidence:g} -> {after.confidence:g}{kept}"


def _regard(one: ReviewState) -> dict[str, object]:
    return {
        "confidence": one.confidence,
        "validations": one.validations,
        "stability": round(one.stability, 6),
        "difficulty": round(one.difficulty, 6),
    }
