"""Which of two pipelines answered better, by judgements and uses of their answers, and how that estimate narrowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.evaluation.experiments.experiment_evidence import (
    Judgements,
    MetricEvidence,
    answered_with,
    metrics_with_evidence,
)
from speckit_memory.evaluation.experiments.experiment_report import QualityDifference, QueryContrast
from speckit_memory.evaluation.statistics.comparison import ALPHA, COMPARED_METRICS, MARGIN, Verdict, verdict_of
from speckit_memory.evaluation.statistics.distinct_queries import distinct
from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    minimum_detectable_effect,
    queries_needed,
    share_interval,
)
from speckit_memory.memory.store.evaluation.records import USE_GRADES, RecordedPair, UseRecord
from speckit_memory.pipeline.ports import Column

OF_MEAN = 0.8
"""Share of alpha given to the interval of the mean when the share of differing questions is estimated too."""


def grades_of_uses(uses: Sequence[UseRecord]) -> Judgements:
    """Grades of the memories of each query by their uses: the highest grade of each memory."""
    found: dict[str, dict[int, float]] = {}
    for use in uses:
        grades = found.setdefault(use.query, {})
        grades[use.memory] = max(grades.get(use.memory, 0.0), USE_GRADES[use.use])
    return found


def known_of(
    questions: tuple[Sequence[Sequence[RecordedPair]], int],
    judgements: Judgements,
    uses: Sequence[UseRecord],
    metrics: Sequence[str] = COMPARED_METRICS,
) -> list[MetricEvidence]:
    """The evidence from judgements and uses on all queries that both pipelines answered, metric by metric.

    Args:
        questions: The questions whose answers differ, and the number of others (`questions_of`).
        judgements: Grades by query and memory.
        uses: Uses of served memories.
        metrics: The metrics to measure.
    """
    differing, alike = questions
    judged = metrics_with_evidence(answered_with(differing, judgements), "judgements", alike=alike, metrics=metrics)
    if not uses:
        return judged
    return [
        *judged,
        *metrics_with_evidence(answered_with(differing, grades_of_uses(uses)), "uses", alike=alike, metrics=metrics),
    ]


def questions_of(contrasts: Sequence[QueryContrast]) -> tuple[list[list[RecordedPair]], int]:
    """The questions whose first answers differ, each with all its pairs, and the number of other questions."""
    differ = {one.pair.query.id for one in contrasts if one.agreement.ordering_difference}
    questions = distinct(one.pair for one in contrasts)
    differing = [pairs for pairs in questions if pairs[0].query.id in differ]
    return differing, len(questions) - len(differing)


def qualities(family: Sequence[MetricEvidence], *, variants: int) -> tuple[QualityDifference, ...]:
    """A comparison for each metric with evidence, as one family with the comparisons of all `variants` of the
    report."""
    return tuple(_quality(entry, variants * max(len(COMPARED_METRICS), len(family))) for entry in family)


def p_value(entry: MetricEvidence) -> float:
    """The anytime-valid p of the metric by itself; 1 where the skipped questions might reverse the direction."""
    worst, best = entry.bounds()
    # skipped questions could reverse the direction
    if not worst.size or worst.mean() * best.mean() <= 0:
        return 1.0
    # the interval of the mean gets `OF_MEAN` of alpha (`over_all`), so p is divided by it
    return min(1.0, max(anytime_p(worst), anytime_p(best)) / (OF_MEAN if _sampled(entry) else 1.0))


def _quality(entry: MetricEvidence, family: int) -> QualityDifference:
    alpha, p = ALPHA / family, p_value(entry)
    delta, interval = over_all(entry, alpha=alpha)
    verdict = _verdict(entry, interval)
    needed = queries_needed(likely := _likely(entry), alpha=alpha, margin=MARGIN, made=likely)
    if verdict != "undecided" or (entry.evidence == "uses" and delta <= 0):
        needed = None  # uses cannot show that the variant is worse
    return QualityDifference(
        metric=entry.metric,
        evidence=entry.evidence,
        queries=len(entry.column),
        alike=entry.alike,
        waiting=entry.unknown,
        delta=delta,
        ci95=interval,
        p=p,
        p_adjusted=min(1.0, family * p),
        verdict=verdict,
        queries_needed=needed,
        minimum_detectable_effect=minimum_detectable_effect(likely, alpha=alpha),
    )


def _likely(entry: MetricEvidence) -> Column:
    """The expected differences of all questions: those with evidence, and a proportional number of zeros for equal
    answers."""
    alike = entry.alike
    if _sampled(entry):
        # as many zeros per judged question as there are equal answers per differing one
        alike = round(alike * len(entry.column) / (len(entry.column) + entry.unknown))
    elif entry.unknown:
        # uses: a question of whose answers nothing was used has the difference 0
        alike += entry.unknown
    return np.concatenate([entry.column, np.zeros(alike)])


def live_verdict(entry: MetricEvidence, *, variants: int) -> Verdict:
    """The verdict on this metric in a report on `variants` variants, regardless of its other metrics."""
    return _verdict(entry, over_all(entry, alpha=ALPHA / (variants * len(COMPARED_METRICS)))[1])


def _verdict(entry: MetricEvidence, interval: tuple[float, float]) -> Verdict:
    verdict = verdict_of(interval)
    if entry.evidence == "uses" and (verdict == "worse" or (verdict == "same" and entry.unknown)):
        return "undecided"  # memories that only the variant finds were never served, so they could not be used
    return verdict


def _sampled(entry: MetricEvidence) -> bool:
    return bool(entry.unknown) and entry.evidence == "judgements"


def over_all(entry: MetricEvidence, *, alpha: float = ALPHA) -> tuple[float, tuple[float, float]]:
    """The mean difference over all questions, and an interval that misses it with a probability of at most `alpha`.

    If every differing question has evidence, or the evidence is uses (unused memories gain nothing), this is the mean
    of one column with 0 for equal answers. Otherwise the judged questions, drawn by lot, represent all differing ones,
    and the share of differing questions is estimated too. The interval is then the widest product of the interval of
    the mean, with `OF_MEAN` of alpha, and the interval of the share, with the rest.
    """
    column, alike, unknown = entry.column, entry.alike, entry.unknown
    if not _sampled(entry):
        whole = np.concatenate([column, np.zeros(alike + unknown)])
        return float(whole.mean()), anytime_interval(whole, level=1 - alpha)
    differing = len(column) + unknown
    # the interval of the share of differing questions, (low, high) in [0, 1]
    shares = share_interval(differing, differing + alike, level=1 - (1 - OF_MEAN) * alpha)
    worst, best = entry.bounds()
    level = 1 - OF_MEAN * alpha
    # for the lower end the skipped questions take their worst values, for the upper end their best
    low, high = anytime_interval(worst, level=level)[0], anytime_interval(best, level=level)[1]
    share = differing / (differing + alike)
    # all four products of the ends, since `low` and `high` may be negative
    return share * float(column.mean()), (min(low * end for end in shares), max(high * end for end in shares))


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
