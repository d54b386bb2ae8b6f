"""What to say of importance, judgements and intents that no step of the pipeline in force weighs."""

from __future__ import annotations

from collections.abc import Container

from speckit_memory.engine import Memory
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.configuration.rules import BY_INTENT

IMPORTANCE = ("importance", "composite")
"""Signals that read the weight and the tier of a memory."""
JUDGEMENTS = ("validation", "confidence", "folder_score")
"""Signals that read what readers found."""
INTENT = ("encoding_intent", "composite")
"""Signals that read the intent, besides steps with a value of `BY_INTENT`."""
_MOVING = frozenset({"constitutional", "deprecated"})
"""Tiers that count in every pipeline: the one comes first, the other is left out."""


def unweighed(memory: Memory, changed: Container[str], tiers: set[str]) -> tuple[str, ...]:
    """A hint when the weight was changed, or the tier from one to another of these, and no search is ordered by it."""
    moved = "importanceWeight" in changed or ("importanceTier" in changed and not tiers & _MOVING)
    return _hint(memory, "importance", IMPORTANCE) if moved else ()


def unweighed_tier(memory: Memory, tier: str | None) -> tuple[str, ...]:
    """A hint when something new is said to be important, and no search is ordered by it."""
    return _hint(memory, "importance", IMPORTANCE) if tier in (Tier.CRITICAL, Tier.IMPORTANT) else ()


def unweighed_judgement(memory: Memory) -> tuple[str, ...]:
    """A hint when no search is ordered by what readers said of memories."""
    return _hint(memory, "what readers found useful", JUDGEMENTS)


def unweighed_intent(memory: Memory, intent: str | None) -> tuple[str, ...]:
    """A hint when an intent was given, and no search is ordered by it."""
    pipeline = memory.pipeline
    values = [
        value
        for step in (pipeline.fusion.fuser, *pipeline.fusion.signals, *pipeline.rerank)
        for value in dict(step.params).values()
    ]
    if not intent or any(isinstance(value, str) and value in BY_INTENT for value in values):
        return ()
    return _hint(memory, "intent", INTENT)


def _hint(memory: Memory, what: str, uses: tuple[str, ...]) -> tuple[str, ...]:
    pipeline = memory.pipeline
    if any(step.use in uses for step in pipeline.fusion.signals):
        return ()
    return (
        f"searches are not ordered by {what}: no step of the pipeline '{pipeline.name}' weighs it; "
        f"`use: {uses[0]}` does",
    )
