"""What to say of an importance that no step of the pipeline in force weighs."""

from __future__ import annotations

from collections.abc import Container

from speckit_memory.engine import Memory

WEIGHING = frozenset({"importance", "composite"})
"""Signals that read the weight and the tier of a memory."""
_MOVING = frozenset({"constitutional", "deprecated"})
"""Tiers that count in every pipeline: the one comes first, the other is left out."""


def unweighed(memory: Memory, changed: Container[str], tiers: set[str]) -> tuple[str, ...]:
    """A hint when the weight was changed, or the tier from one to another of these, and no search is ordered by it."""
    moved = "importanceWeight" in changed or ("importanceTier" in changed and not tiers & _MOVING)
    pipeline = memory.pipeline
    if not moved or any(step.use in WEIGHING for step in pipeline.fusion.signals):
        return ()
    return (
        f"searches are not ordered by importance: no step of the pipeline '{pipeline.name}' weighs it; "
        "`use: importance` does",
    )
