"""Which of two pipelines answered better, as far as judgements and uses of their answers tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speckit_memory.evaluation import sequential, significance
from speckit_memory.evaluation.comparison import ALPHA, COMPARED_METRICS, Verdict, verdict_of
from speckit_memory.evaluation.distinct import distinct
from speckit_memory.evaluation.experiment_evidence import Evidenced, Judgements, answered_with, evidenced
from speckit_memory.evaluation.experiment_report import Contrast, Quality
from speckit_memory.memory.store.evaluation.records import USE_GRADES, Pair, UseRecord


def used(uses: Sequence[UseRecord]) -> Judgements:
    """What uses say of the memories of each query: the weightiest use of each."""
    found: dict[str, dict[int, float]] = {}
    for use in uses:
        grades = found.setdefault(use.query, {})
        grades[use.memory] = max(grades.get(use.memory, 0.0), USE_GRADES[use.use])
    return found


def known_of(
    contrasts: Sequence[Contrast],
    judgements: Judgements,
    uses: Sequence[UseRecord],
    metrics: Sequence[str] = COMPARED_METRICS,
) -> list[Evidenced]:
    """What judgements and uses say of all queries that both pipelines answered, metric by metric."""
    differing, alike = questions_of(contrasts)
    judged = evidenced(answered_with(differing, judgements), "judgements", alike=alike, metrics=metrics)
    if not uses:
        return judged
    return [*judged, *evidenced(answered_with(differing, used(uses)), "uses", alike=alike, metrics=metrics)]


def questions_of(contrasts: Sequence[Contrast]) -> tuple[list[list[Pair]], int]:
    """The questions that the first time got different answers, each with all its pairs, and the number of others."""
    differ = {one.pair.query.id for one in contrasts if one.agreement.ordering_difference}
    questions = distinct(one.pair for one in contrasts)
    differing = [pairs for pairs in questions if pairs[0].query.id in differ]
    return differing, len(questions) - len(differing)


def qualities(family: Sequence[Evidenced], *, seed: int) -> tuple[Quality, ...]:
    """A comparison for each metric with evidence, as one family."""
    found = p_values(family)
    alpha = ALPHA / max(1, len(family))  # the strictest step of Holm's correction
    return tuple(
        _quality(entry, p, adjusted, alpha=alpha, seed=seed)
        for entry, p, adjusted in zip(family, found, significance.holm(found), strict=True)
    )


def p_values(family: Sequence[Evidenced]) -> list[float]:
    """That of each metric by itself, valid at every look while queries come in."""
    return [_p(entry) for entry in family]


def _p(entry: Evidenced) -> float:
    """Whatever was skipped may show, it shows the same direction: 1 where it might turn it round."""
    worst, best = entry.bounds()
    if not worst.size or worst.mean() * best.mean() <= 0:
        return 1.0
    return max(sequential.anytime_p(worst), sequential.anytime_p(best))


def _quality(entry: Evidenced, p: float, p_adjusted: float, *, alpha: float, seed: int) -> Quality:
    evidence, metric, column, alike, unknown, _ = entry
    every = len(column) + unknown + alike
    delta, interval = over_all(entry)
    detectable = sequential.minimum_detectable_effect(column, alpha=alpha, seed=seed)
    verdict = verdict_of(delta, interval, p_adjusted, _known(entry))
    if evidence == "uses" and (verdict == "worse" or (verdict == "same" and unknown)):
        verdict = "undecided"  # what only the variant finds was never served, so it could not be used
    needed = None
    if verdict == "undecided":
        needed = sequential.queries_needed(column, alpha=alpha, seed=seed, made=column)
    if evidence == "uses" and delta <= 0:
        needed = None  # no number of uses shows it worse
    return Quality(
        metric=metric,
        evidence=evidence,
        queries=len(column),
        alike=alike,
        delta=delta,
        ci95=interval,
        p=p,
        p_adjusted=p_adjusted,
        verdict=verdict,
        queries_needed=needed,
        minimum_detectable_effect=None if detectable is None else (len(column) + unknown) / every * detectable,
    )


def live_verdict(entry: Evidenced) -> Verdict:
    """The verdict on this metric that a report gives, whatever its other metrics show."""
    delta, interval = over_all(entry)
    return verdict_of(delta, interval, min(1.0, len(COMPARED_METRICS) * _p(entry)), _known(entry))


def over_all(entry: Evidenced) -> tuple[float, tuple[float, float]]:
    """The mean difference over all questions, and its 95 % interval.

    Where every question that differs has evidence it is that of one column, with 0 for those alike; and so it is of
    uses, where nothing was gained by what nobody used. Else those with judgements, which were drawn by lot, stand for
    all that differ, and how many of all questions differ is known as well as these questions tell: the interval is the
    widest product of two, of which the mean may be wrong in 4 % and the share in 1 % of cases.
    """
    column, alike, unknown = entry.column, entry.alike, entry.unknown
    if not unknown or entry.evidence == "uses":
        whole = np.concatenate([column, np.zeros(alike + unknown)])
        return float(whole.mean()), sequential.anytime_interval(whole)
    differing = len(column) + unknown
    shares = sequential.share_interval(differing, differing + alike, level=0.99)
    worst, best = entry.bounds()
    low, high = sequential.anytime_interval(worst, level=0.96)[0], sequential.anytime_interval(best, level=0.96)[1]
    share = differing / (differing + alike)
    return share * float(column.mean()), (min(low * end for end in shares), max(high * end for end in shares))


def _known(entry: Evidenced) -> int:
    """How many questions a verdict rests on."""
    return len(entry.column) + (0 if entry.unknown else entry.alike)
