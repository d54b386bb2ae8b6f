"""Is a difference between two pipelines real? Paired tests over the same queries.

The unit is the query: `differences` float64[n] holds one value per query, the metric of the second pipeline minus that
of the first. Nothing is assumed about their distribution. Random draws come from a seed, so a report can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

DRAWS = 9_999
"""Random sign patterns of a permutation test, and resamples of a bootstrap: p is known to about 0.002 near 0.05."""

EXACT_UP_TO = 13
"""With so many queries that differ, all 2^13 sign patterns are fewer than `DRAWS`, and the test is exact."""

POWER = 0.80
_BATCH = 1_000
_TOLERANCE = 1e-12


def sign_flip_p(differences: Column, *, seed: int) -> float:
    """Two-sided p of the paired sign-flip permutation test: the chance of a mean difference at least this large when
    either pipeline were as likely to be ahead on each query (Fisher 1935; Smucker et al., CIKM 2007).

    Exact for few differing queries, else from `DRAWS` random patterns with the observed one counted in, so that p is
    never 0.
    """
    differing = differences[differences != 0]  # flipping a zero changes nothing
    observed = abs(float(differing.sum()))
    # sums that differ only by rounding are ties, and ties count as "at least as large"
    threshold = observed - _TOLERANCE * float(np.abs(differing).sum())
    if len(differing) <= EXACT_UP_TO:
        patterns = np.arange(2 ** len(differing))[:, None] >> np.arange(len(differing)) & 1
        return float(np.mean(np.abs(_flipped(patterns, differing)) >= threshold))
    rng = np.random.default_rng(seed)
    extreme = 0
    for size in _batches(DRAWS):
        patterns = rng.integers(0, 2, (size, len(differing)))
        extreme += int(np.count_nonzero(np.abs(_flipped(patterns, differing)) >= threshold))
    return (extreme + 1) / (DRAWS + 1)


def _flipped(patterns: NDArray[np.int64], differing: Column) -> Column:
    """The sum of the differences under each pattern of signs; 1 in a pattern keeps the sign, 0 flips it."""
    sums: Column = (2.0 * patterns - 1.0) @ differing
    return sums


def bootstrap_interval(differences: Column, *, seed: int, level: float = 0.95) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean difference (Efron 1979; Sakai, SIGIR 2006)."""
    rng = np.random.default_rng(seed)
    n = len(differences)
    means = np.concatenate([differences[rng.integers(0, n, (size, n))].mean(axis=1) for size in _batches(DRAWS)])
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, (tail, 100 - tail))
    return float(low), float(high)


def _batches(draws: int) -> Iterator[int]:
    for start in range(0, draws, _BATCH):
        yield min(_BATCH, draws - start)


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
