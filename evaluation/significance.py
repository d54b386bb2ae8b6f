"""Is a difference between two pipelines real? Paired tests over the same queries.

The unit is the query: `differences` float64[n] holds one value per query, the metric of the second pipeline minus that
of the first. Nothing is assumed about their distribution. Random draws come from a seed, so a report can be repeated.
scipy.stats does the resampling; it is imported where it is needed, for it takes most of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import NormalDist

import numpy as np

from speckit_memory.pipeline.ports import Column

DRAWS = 9_999
"""Random sign patterns of a permutation test, and resamples of a bootstrap: p is known to about 0.002 near 0.05. Where
all patterns are no more than these, up to 13 queries that differ, all are taken and p is exact."""

POWER = 0.80
_BATCH = 1_000


def sign_flip_p(differences: Column, *, seed: int) -> float:
    """Two-sided p of the paired sign-flip permutation test: the chance of a mean difference at least this large when
    either pipeline were as likely to be ahead on each query (Fisher 1935; Smucker et al., CIKM 2007).

    Exact for few differing queries, else from `DRAWS` random patterns with the observed one counted in, so that p is
    never 0. Sums that differ only by rounding are ties, and ties count as "at least as large".
    """
    from scipy.stats import permutation_test

    differing = differences[differences != 0]  # flipping a zero changes nothing, and doubles the patterns
    if len(differing) < 2:  # either sign of a single value is as far from zero
        return 1.0
    found = permutation_test(
        (differing,), _size_of_sum, permutation_type="samples", alternative="greater",
        n_resamples=DRAWS, batch=_BATCH, vectorized=True, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(found.pvalue)


def _size_of_sum(differing: Column, axis: int) -> Column:
    size: Column = np.abs(differing.sum(axis=axis))
    return size


def bootstrap_interval(differences: Column, *, seed: int, level: float = 0.95) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean difference (Efron 1979; Sakai, SIGIR 2006); of no width where all
    values are the same."""
    from scipy.stats import bootstrap

    if np.ptp(differences) == 0:
        return float(differences[0]), float(differences[0])
    found = bootstrap(
        (differences,), np.mean, confidence_level=level, method="percentile",
        n_resamples=DRAWS, batch=_BATCH, rng=np.random.default_rng(seed),
    )  # fmt: skip
    low, high = found.confidence_interval
    return float(low), float(high)


def quantile_interval(values: Column, share: float, *, level: float = 0.95) -> tuple[float, float]:
    """The interval of what this share of all values lies below: between two of the values, by the binomial
    distribution of how many lie below it. An end is infinite where there are too few to know it."""
    from scipy.stats import binom

    ordered, n = np.sort(values), len(values)
    low, high = (int(binom.ppf(tail, n, share)) for tail in ((1 - level) / 2, (1 + level) / 2))
    return float(ordered[low - 1]) if low else -np.inf, float(ordered[high]) if high < n else np.inf


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted for making all these comparisons at once (Holm 1979), in the given order.

    The chance of even one false "better" or "worse" in the whole report stays below the level.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for passed, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - passed) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def queries_needed(differences: Column, *, alpha: float) -> int | None:
    """How many queries would show the observed mean difference, as large as it is here, with 80 % power.

    From the normal approximation of the paired test, two-sided at `alpha`. None when there is no difference to show or
    fewer than two queries to estimate its spread from.
    """
    mean = abs(float(differences.mean()))
    if mean == 0 or len(differences) < 2:
        return None
    return max(2, ceil((_distance(alpha) * float(differences.std(ddof=1)) / mean) ** 2))


def minimum_detectable_effect(differences: Column, *, alpha: float) -> float | None:
    """The smallest mean difference that this many queries show with 80 % power, two-sided at `alpha`.

    None with fewer than two queries.
    """
    if len(differences) < 2:
        return None
    return _distance(alpha) * float(differences.std(ddof=1)) / float(np.sqrt(len(differences)))


def _distance(alpha: float) -> float:
    """How many standard errors an effect must be away from 0."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)
