"""Whether searches became slower than a stored measurement says, step by step and as a whole.

Both measurements asked the same queries, so that they are compared in pairs. A step counts as slower where the queries
say so beyond the margin (Wilcoxon's signed ranks of the logarithms, one-sided, Holm over all steps) and where it moves
the whole: a step that takes a hundredth of a search may double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from bench.steps import FRAME, WHOLE, Costs

MARGIN, STEP_MARGIN, FRAME_MARGIN = 0.3, 0.5, 1.0
"""Of the whole search, of one step, and of what the frame takes between steps. Runs of one commit differ by less, on a
busy machine too: see docs/decisions/0053-ratios-that-guard.md."""
SIGNIFICANCE = 0.01
MATERIAL = 0.03
"""The least growth of a median that counts, as a share of the whole search before."""

Verdict = Literal["slower", "faster", "new", "gone", "as before"]


@dataclass(frozen=True, slots=True)
class Change:
    """Medians of one step of one complexity in floors; None where the step was not there, or is not any more."""

    complexity: str
    step: str
    before: float | None
    after: float | None
    verdict: Verdict


def compared(before: Costs, after: Costs) -> list[Change]:
    """Every step of either measurement, in the order in which they run."""
    found: list[Change] = []
    chances: dict[int, float] = {}
    for complexity, steps in after.items():
        known = before.get(complexity, {})
        for step in dict.fromkeys([*steps, *known]):
            if step not in known or step not in steps:
                verdict: Verdict = "gone" if step in known else "new"
                found.append(Change(complexity, step, _median(known.get(step)), _median(steps.get(step)), verdict))
                continue
            margin = {WHOLE: MARGIN, FRAME: FRAME_MARGIN}.get(step, STEP_MARGIN)
            grown, chance = _grown(np.array(known[step]), np.array(steps[step]), margin)
            chances[len(found)] = chance
            verdict = "slower" if grown else "faster"
            found.append(Change(complexity, step, _median(known[step]), _median(steps[step]), verdict))
    for at, chance in zip(chances, _holm(list(chances.values())), strict=True):
        change = found[at]
        whole = float(np.median(before[change.complexity][WHOLE]))
        moved = abs((change.after or 0.0) - (change.before or 0.0)) >= MATERIAL * whole
        if chance > SIGNIFICANCE or not moved:
            found[at] = Change(change.complexity, change.step, change.before, change.after, "as before")
    return found


def _median(costs: Sequence[float] | None) -> float | None:
    return None if costs is None else float(np.median(costs))


def _grown(before: NDArray[np.float64], after: NDArray[np.float64], margin: float) -> tuple[bool, float]:
    """Whether a step is slower rather than faster, and the chance that it is not so beyond the margin."""
    tiny = 1e-6
    ratios = np.log(np.maximum(after, tiny)) - np.log(np.maximum(before, tiny))
    grown = bool(np.median(ratios) > 0)
    beyond = (ratios if grown else -ratios) - np.log1p(margin)
    return grown, float(wilcoxon(beyond, alternative="greater").pvalue) if beyond.any() else 1.0


def _holm(chances: Sequence[float]) -> list[float]:
    adjusted, highest = [0.0] * len(chances), 0.0
    for rank, at in enumerate(np.argsort(chances).tolist()):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[at]))
        adjusted[at] = highest
    return adjusted
