"""Compares pipelines pairwise on the same queries, with a one-word verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    minimum_detectable_effect,
    queries_needed,
)
from speckit_memory.pipeline.ports import Column

COMPARED_METRICS = ("nDCG@10", "MRR@5")
"""The compared metrics. Each further metric would reduce the statistical power on all others."""

ALPHA = 0.05
MARGIN = 0.005
"""Differences up to this are of no practical interest."""
Values = Mapping[str, Column]
"""The value of each metric for each query."""

Verdict = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pipeline `b` compared with pipeline `a` on one metric.

    `delta` is the mean of b minus the mean of a over the same queries. `p` is the p-value of a bet against no
    difference (`sequential`); `p_adjusted` is p times the number of comparisons in the report (Bonferroni). `ci95`
    holds the mean simultaneously with the intervals of all other comparisons and gives the verdict on b: better or
    worse when it excludes 0 (equivalent to `p_adjusted` < 0.05), same when it lies within ±0.005, else undecided.
    `queries_needed`: only when undecided, the number of queries that would show a difference of the observed size, or
    that there is none of interest.
    """

    a: str
    b: str
    metric: str
    delta: float
    ci95: tuple[float, float]
    p: float
    p_adjusted: float
    verdict: Verdict
    queries_needed: int | None
    minimum_detectable_effect: float | None


def compare(
    values: Mapping[str, Values],
    pairs: Sequence[tuple[str, str]],
    *,
    metrics: Sequence[str] = COMPARED_METRICS,
    largest: float = 1.0,
    family: int | None = None,
) -> tuple[Comparison, ...]:
    """Compares each pair (a, b) on each metric, as one family of tests.

    Args:
        values: One value per query by pipeline and metric, aligned over the pipelines.
        pairs: Names of pipelines (a, b).
        metrics: The metrics to compare.
        largest: Upper bound on the absolute difference of a query.
        family: Number of comparisons to correct for; None for those made here.
    """
    asked = [(a, b, metric) for a, b in pairs for metric in metrics]
    # differences: (queries,) float64, scaled to [-1, 1], the range that the bets assume
    return tuple(
        _comparison(a, b, metric, (values[b][metric] - values[a][metric]) / largest, largest, family or len(asked))
        for a, b, metric in asked
    )


def without_losses(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Comparisons by use of earlier answers, with "worse" replaced by "undecided".

    A memory that only b finds was never served and so could not be used; no number of queries shows b to be worse.
    """
    return tuple(
        replace(one, verdict="undecided", queries_needed=None) if one.verdict == "worse" else one for one in comparisons
    )


def macro_averaged(values: Sequence[Values]) -> Values:
    """The queries of several datasets, weighted so that every dataset counts the same in their mean."""
    weights = _weights(values)
    return {
        metric: np.concatenate([weight * one[metric] for weight, one in zip(weights, values, strict=True)])
        for metric in values[0]
    }


def largest_weight(values: Sequence[Values]) -> float:
    """The largest possible difference of macro-averaged values when those of single queries are at most 1."""
    return max(_weights(values))


def _weights(values: Sequence[Values]) -> list[float]:
    # all metrics have one value per query: any of them gives the number of queries
    sizes = [len(one[COMPARED_METRICS[0]]) for one in values]
    # weight of a dataset = N / (datasets * n): the weighted mean over all N queries is the macro-average
    return [sum(sizes) / (len(sizes) * size) for size in sizes]


def _comparison(a: str, b: str, metric: str, differences: Column, largest: float, family: int) -> Comparison:
    """Compares by differences scaled to [-1, 1]."""
    # Bonferroni: level and intervals of one test in a family
    alpha, p = ALPHA / family, anytime_p(differences)
    low, high = (end * largest for end in anytime_interval(differences, level=1 - alpha))
    verdict = verdict_of((low, high))
    needed, detectable = None, minimum_detectable_effect(differences, alpha=alpha)
    if verdict == "undecided":
        # `made` counts towards the total: these queries stay in the sample
        needed = queries_needed(differences, alpha=alpha, margin=MARGIN / largest, made=differences)
    return Comparison(
        a=a,
        b=b,
        metric=metric,
        delta=float(differences.mean()) * largest,
        ci95=(low, high),
        p=p,
        p_adjusted=min(1.0, family * p),
        verdict=verdict,
        queries_needed=needed,
        minimum_detectable_effect=None if detectable is None else detectable * largest,
    )


def verdict_of(interval: tuple[float, float]) -> Verdict:
    """The verdict on the interval of a mean difference, as `Comparison` describes it."""
    low, high = interval
    if low > 0 or high < 0:
        return "better" if low > 0 else "worse"
    return "same" if low >= -MARGIN and high <= MARGIN else "undecided"
