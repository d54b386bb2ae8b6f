"""How the estimate of an experiment narrowed while its queries came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speckit_memory.evaluation.experiments.experiment_evidence import Judgements, answered_with, metrics_with_evidence
from speckit_memory.evaluation.experiments.experiment_quality import over_all, questions_of
from speckit_memory.evaluation.experiments.experiment_report import QueryContrast
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS

METRIC = COMPARED_METRICS[0]
_LOOKS = 40


@dataclass(frozen=True, slots=True)
class SequentialEstimate:
    """The estimate after the first `queries` queries: variant minus control on `METRIC`, with an anytime-valid
    interval.

    `judged` of the queries differ and have judgements.
    """

    queries: int
    judged: int
    delta: float
    ci95: tuple[float, float]


def course(contrasts: Sequence[QueryContrast], judgements: Judgements) -> list[SequentialEstimate]:
    """Up to forty estimates, in the order in which the queries came; none before ten differing queries are judged.

    The last estimate is over all queries.
    """
    if not judgements:
        return []
    # a set: for few queries, several looks have the same end, or the end 0
    ends = sorted({round(len(contrasts) * look / _LOOKS) for look in range(1, _LOOKS + 1)} - {0})
    looks = []
    for end in ends:
        differing, alike = questions_of(contrasts[:end])
        found = metrics_with_evidence(
            answered_with(differing, judgements), "judgements", alike=alike, metrics=(METRIC,)
        )
        if found:
            delta, interval = over_all(found[0])
            looks.append(SequentialEstimate(end, len(found[0].column), delta, interval))
    return looks
