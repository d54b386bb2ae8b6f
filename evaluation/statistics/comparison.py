"""Compares pipelines pairwise on the same queries, and says in one word what that shows."""

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
"""The metrics that are compared. Every further one would cost all others power."""

ALPHA = 0.05
MARGIN = 0.005
"""Differences up to this are of no practical interest."""
Values = Mapping[str, Column]
"""The value of each metric for each query."""

Verdict = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What pipeline `b` does against pipeline `a` on one metric.

    `delta` is the mean of b minus the mean of a over the same queries, `p` that of a bet against no difference
    (`sequential`), `p_adjusted` that times the number of all comparisons of the report. `ci95` holds the mean together
    with the intervals of all other comparisons. It gives the verdict on b: better or worse when it leaves out 0, which
    it does when `p_adjusted` is below 0.05, same when it lies within ±0.005, else undecided. `queries_needed`: only
    when undecided, how many queries would show a difference as large as the one seen, or none of interest.
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
    """Compares each pair (a, b) on each of `metrics`, as one family, or as a part of one of so many comparisons.

    `values` holds, by pipeline and metric, one value per query, aligned over the pipelines; no difference can be larger
    than `largest`.
    """
    asked = [(a, b, metric) for a, b in pairs for metric in metrics]
    return tuple(
        _comparison(a, b, metric, (values[b][metric] - values[a][metric]) / largest, largest, family or len(asked))
        for a, b, metric in asked
    )


def without_losses(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons by what was used of earlier answers: what only b finds was never served, so it could not be used,
    and b that looks worse is undecided, whatever the number of queries."""
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
    """How large a difference of macro-averaged values can be, where those of single queries are at most 1."""
    return max(_weights(values))


def _weights(values: Sequence[Values]) -> list[float]:
    sizes = [len(one[COMPARED_METRICS[0]]) for one in values]
    return [sum(sizes) / (len(sizes) * size) for size in sizes]


def _comparison(a: str, b: str, metric: str, differences: Column, largest: float, family: int) -> Comparison:
    """From differences that are stretched to [-1, 1]."""
    alpha, p = ALPHA / family, anytime_p(differences)
    low, high = (end * largest for end in anytime_interval(differences, level=1 - alpha))
    verdict = verdict_of((low, high))
    needed, detectable = None, minimum_detectable_effect(differences, alpha=alpha)
    if verdict == "undecided":
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
    """What the interval of a mean difference shows, as `Comparison` says."""
    low, high = interval
    if low > 0 or high < 0:
        return "better" if low > 0 else "worse"
    return "same" if low >= -MARGIN and high <= MARGIN else "undecided"
