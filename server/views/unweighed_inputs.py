"""Hints on importance, judgements and intents that no step of the pipeline uses for ranking."""

from __future__ import annotations

from collections.abc import Container

from speckit_memory.engine import Memory
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.configuration.rules import BY_INTENT

IMPORTANCE = ("importance", "composite")
"""Signals that read the weight and the tier of a memory."""
JUDGEMENTS = ("validation", "confidence", "folder_score")
"""Signals that read the judgements of readers."""
INTENT = ("encoding_intent", "composite")
"""Signals that read the intent; so do steps with a value of `BY_INTENT`."""
_MOVING = frozenset({"constitutional", "deprecated"})
"""Tiers with an effect in every pipeline: the first ranks on top, the second is excluded."""


def unweighed_hint(memory: Memory, changed: Container[str], tiers: set[str]) -> tuple[str, ...]:
    """A hint if the weight or tier was changed and the ranking does not use it."""
    moved = "importanceWeight" in changed or ("importanceTier" in changed and not tiers & _MOVING)
    return _hint(memory, "importance", IMPORTANCE) if moved else ()


def unweighed_tier(memory: Memory, tier: str | None) -> tuple[str, ...]:
    """A hint if a new memory has an important tier and the ranking does not use it."""
    return _hint(memory, "importance", IMPORTANCE) if tier in (Tier.CRITICAL, Tier.IMPORTANT) else ()


def unweighed_judgement(memory: Memory) -> tuple[str, ...]:
    """A hint if the ranking does not use judgements."""
    return _hint(memory, "judgements of usefulness", JUDGEMENTS)


def unweighed_intent(memory: Memory, intent: str | None) -> tuple[str, ...]:
    """A hint if an intent was given and the ranking does not use it."""
    pipeline = memory.pipelines.current
    values = [
        value
        for step in (pipeline.fusion.fuser, *pipeline.fusion.signals, *pipeline.rerank)
        # any step may depend on the intent through a rule in its parameters
        for value in dict(step.params).values()
    ]
    if not intent or any(isinstance(value, str) and value in BY_INTENT for value in values):
        return ()
    return _hint(memory, "intent", INTENT)


def _hint(memory: Memory, what: str, uses: tuple[str, ...]) -> tuple[str, ...]:
    pipeline = memory.pipelines.current
    if any(step.use in uses for step in pipeline.fusion.signals):
        return ()
    return (
        f"the ranking does not depend on {what}: no step of the pipeline '{pipeline.name}' uses it; "
        f"`use: {uses[0]}` does",
    )
