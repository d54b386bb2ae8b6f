"""Explain: a pure function over the score columns of a pool (feature P8).

The parts are those that the frame computed the score from, so what explain says is what happened, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from speckit_memory.pipeline.model import Pool


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """What one step did to one row's score.

    `kind` is "sum" (the parts add up to the score), "add", "multiply" or "replace"; `parts` are the named numbers.
    """

    step: str
    kind: str
    scale: str
    parts: dict[str, float]
    before: float | None
    after: float


def explain(pool: Pool, row: int) -> tuple[StepExplanation, ...]:
    """How the score of one row came about, step by step; the last `after` is its score."""
    explained: list[StepExplanation] = []
    before: float | None = None
    for step in pool.steps:
        after = float(step.after[row])
        parts = dict(zip(step.names, step.parts[row].tolist(), strict=True))
        explained.append(StepExplanation(step.step, step.kind, str(step.scale), parts, before, after))
        before = after
    return tuple(explained)
