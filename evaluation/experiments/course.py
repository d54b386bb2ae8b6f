"""How what is known of an experiment narrowed down while its queries came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speckit_memory.evaluation.experiments.experiment_evidence import Judgements, answered_with, evidenced
from speckit_memory.evaluation.experiments.experiment_quality import over_all, questions_of
from speckit_memory.evaluation.experiments.experiment_report import Contrast
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS

METRIC = COMPARED_METRICS[0]
_LOOKS = 40


@dataclass(frozen=True, slots=True)
class Look:
    """What was known after so many queries: variant minus control on `METRIC`, with the interval that holds at every
    look at once. `judged` of the queries differ and have judgements."""

    queries: int
    judged: int
    delta: float
    ci95: tuple[float, float]


def course(contrasts: Sequence[Contrast], judgements: Judgements) -> list[Look]:
    """Up to forty looks at queries in the order in which they came; none before ten that differ are
    judged. The last look is at all of them."""
    if not judgements:
        return []
    ends = sorted({round(len(contrasts) * look / _LOOKS) for look in range(1, _LOOKS + 1)} - {0})
    looks = []
    for end in ends:
        differing, alike = questions_of(contrasts[:end])
        found = evidenced(answered_with(differing, judgements), "judgements", alike=alike, metrics=(METRIC,))
        if found:
            delta, interval = over_all(found[0])
            looks.append(Look(end, len(found[0].column), delta, interval))
    return looks
