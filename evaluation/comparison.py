"""Compares pipelines pairwise on the same queries, and says in one word what that shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from speckit_memory.evaluation.sequential import anytime_interval
from speckit_memory.evaluation.significance import (
    bootstrap_interval,
    holm,
    minimum_detectable_effect,
    queries_needed,
    sign_flip_p,
)
from speckit_memory.pipeline.ports import Column

COMPARED_METRICS = ("nDCG@10", "MRR@5")
"""The metrics that are compared. Every further one would cost all others power."""

ALPHA = 0.05
MARGIN = 0.005
"""Differences up to this are of no practical interest."""
ENOUGH_FOR_SAME = 50
"""Below so many queries nothing is called the same: a handful that happen to agree have a narrow interval too."""

Values = Mapping[str, Column]
"""The value of each metric for each query."""

Verdict = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What pipeline `b` does against pipeline `a` on one metric.

    `delta` is the mean of b minus the mean of a over the same queries, `ci95` its bootstrap interval, `p` the two-sided
    sign-flip p, `p_adjusted` after Holm's correction over all comparisons of the report. The verdict is about b:
    better or worse when `p_adjusted` is below 0.05, else same when the mean is known to lie within ±0.005 by bets,
    which allow for losses that no query has shown, or when no query of fifty and more differs at all; else undecided.
    `queries_needed`: only when undecided, how many queries would settle a difference as large as the one seen.
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
    seed: int,
    metrics: Sequence[str] = COMPARED_METRICS,
) -> tuple[Comparison, ...]:
    """Compares each pair (a, b) on each of `metrics`, as one family.

    `values` holds, by pipeline and metric, one value per query, aligned over the pipelines.
    """
    family = [(a, b, metric) for a, b in pairs for metric in metrics]
    differences = [values[b][metric] - values[a][metric] for a, b, metric in family]
    p_values = [sign_flip_p(column, seed=seed) for column in differences]
    rows = zip(family, differences, p_values, holm(p_values), strict=True)
    return tuple(_comparison(*named, column, p, adjusted, len(family), seed) for named, column, p, adjusted in rows)


def without_losses(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons by what was used of earlier answers: what only b finds was never served, so it could not be used,
    and b that looks worse is undecided, whatever the number of queries."""
    return tuple(
        replace(one, verdict="undecided", queries_needed=None) if one.verdict == "worse" else one for one in comparisons
    )


def macro_averaged(values: Sequence[Values]) -> Values:
    """The queries of several datasets, weighted so that every dataset counts the same in their mean."""
    sizes = [len(one[COMPARED_METRICS[0]]) for one in values]
    weights = [sum(sizes) / (len(sizes) * size) for size in sizes]
    return {
        metric: np.concatenate([weight * one[metric] for weight, one in zip(weights, values, strict=True)])
        for metric in values[0]
    }


def _comparison(
    a: str, b: str, metric: str, differences: Column, p: float, p_adjusted: float, family: int, seed: int
) -> Comparison:
    delta = float(differences.mean())
    interval = bootstrap_interval(differences, seed=seed)
    # a bootstrap draws only what was seen, so that a few rare losses would pass for none
    bounds = anytime_interval(differences) if differences.any() else (0.0, 0.0)
    verdict = verdict_of(delta, bounds, p_adjusted, len(differences))
    alpha = ALPHA / family  # the strictest step of Holm's correction: what is planned with it will be seen
    return Comparison(
        a=a,
        b=b,
        metric=metric,
        delta=delta,
        ci95=interval,
        p=p,
        p_adjusted=p_adjusted,
        verdict=verdict,
        queries_needed=queries_needed(differences, alpha=alpha) if verdict == "undecided" else None,
        minimum_detectable_effect=minimum_detectable_effect(differences, alpha=alpha),
    )


def verdict_of(delta: float, interval: tuple[float, float], p_adjusted: float, queries: int) -> Verdict:
    """What a mean difference over so many queries shows, as `Comparison` says."""
    if p_adjusted < ALPHA:
        return "better" if delta > 0 else "worse"
    if queries >= ENOUGH_FOR_SAME and interval[0] >= -MARGIN and interval[1] <= MARGIN:
        return "same"
    return "undecided"
