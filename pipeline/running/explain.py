"""Explain: a pure function over the score columns of a pool (feature P8).

The parts are those from which the frame computed the score, so the explanation is exact to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from speckit_memory.pipeline.model.columns import Pool, StepScore
from speckit_memory.pipeline.model.formulas import BEFORE, parse_formula
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """The effect of one step on one row's score.

    `kind` is "sum" (the parts add up to the score), "add", "multiply" (the only part and the score before), "formula"
    (the value of `formula`, in which `before` is the score before and every other name a part) or "replace" (the step
    does not give a formula). On the scale "unit" a score that rounding moves beyond 0 or 1 is 0 or 1.
    """

    step: str
    kind: str
    scale: str
    parts: dict[str, float]
    before: float | None
    after: float
    formula: str = ""


def explain(pool: Pool, row: int) -> tuple[StepExplanation, ...]:
    """How the score of one row was computed, step by step; the last `after` is its score."""
    explained: list[StepExplanation] = []
    before: float | None = None
    for step in pool.steps:
        after = float(step.after[row])
        if step.formulas:
            explained.append(_derived(step, row, before, after))
        else:
            parts = dict(zip(step.names, step.parts[row].tolist(), strict=True))
            explained.append(StepExplanation(step.step, step.kind, str(step.scale), parts, before, after))
        before = after
    return tuple(explained)


def _derived(step: StepScore, row: int, before: float | None, after: float) -> StepExplanation:
    """The formula that gives the score of a row; if the step has named another one, the score alone."""
    try:
        formula, parts = Workings(step.formulas, step.names, step.parts).of_row(row)
        known = parts if before is None else parts | {BEFORE: before}
        numbers = {name: np.array([part]) for name, part in known.items()}
        value = float(np.ravel(parse_formula(formula).value(numbers))[0])
    except (KeyError, ValueError):  # it names no part, it cannot be read, or none applies
        formula, parts, value = "", {}, np.nan
    if step.scale is Scale.UNIT:
        value = min(max(value, 0.0), 1.0)
    if value != after:
        return StepExplanation(step.step, "replace", str(step.scale), {step.step: after}, before, after)
    return StepExplanation(step.step, step.kind, str(step.scale), parts, before, after, formula)
