"""Is a difference between two pipelines real? Tests and intervals that are anytime-valid.

The unit is the query: differences float64[n] hold one value per query, the metric of the second pipeline minus that of
the first. A live experiment is read at any time and continues; a dataset may be measured again and again. With tests
for a fixed number of queries, each look is one more chance of a false verdict. The tests here may be read after every
query: the probability that any of the looks, however many, calls one of two equal pipelines better stays below alpha.

They are bets against the hypothesis that the mean of the differences d in [-1, 1] is m. Each new difference multiplies
the stake by 1 + b (d - m), which is fair if m is the mean, so that the stake exceeds 1/alpha with a probability of at
most alpha (Ville 1939). The evidence against m is the value of an equal mixture of fixed bets b; the interval holds
every m with evidence below 1/alpha (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
JRSS B 2024; mixtures of fixed bets: Cover 1991, Orabona and Jun 2024). The evidence does not depend on the order of the
queries. The only assumptions are the bounds of the differences and that they are a sample; a query without a difference
adds no evidence against 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, sqrt
from statistics import NormalDist

import numpy as np

from speckit_memory.pipeline.ports import Column

POWER = 0.80
"""The probability of a verdict for which numbers of queries are planned."""

_SIZES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99)
_BETS = np.array([*(-size for size in _SIZES), *_SIZES])
"""Bets as shares of the largest bet that cannot lose more than the stake; small bets detect small effects."""

_ONE_SIDED = np.array([1.0, 0.95, 0.8, 0.55, 0.35, 0.2, 0.1, 0.05, 0.02])
_STAKED = np.array([0.5, *[0.0625] * 8])
"""Half is staked on the full bet: the best one while no query has lost everything, and most comparisons are nearly
equal."""

_LONGEST = 10_000_000
# 40 halvings of [-1, 1] leave 2e-12; 16 of [0, 1] leave 2e-5, enough for a plan
_STEPS, _ROUGH = 40, 16


def log_evidence(differences: Column, mean: float = 0.0) -> Column:
    """The natural logarithm of the evidence against `mean`, over the last axis of differences in [-1, 1].

    Above log 20 = 3.0 the mean is outside the 95 % interval. 0 without differences.
    """
    # equal differences grow a bet equally: evaluate each distinct value once, then sum over the queries
    # differences: (…, n). Indexing (distinct, bets) with it gives (…, n, bets), the sum over queries (…, bets).
    values, of = np.unique(differences, return_inverse=True)
    grown: Column = _growth(values, mean)[of.reshape(differences.shape)].sum(axis=-2)
    return _mixed(grown)


def anytime_p(differences: Column) -> float:
    """The anytime-valid two-sided p of a mean of 0."""
    # Ville: the evidence exceeds 1 / p at any time with a probability of at most p, so its inverse is a p-value
    return float(np.exp(-max(0.0, float(log_evidence(differences)))))


def anytime_interval(differences: Column, *, level: float = 0.95) -> tuple[float, float]:
    """The anytime-valid interval of the mean difference; [-1, 1] without differences.

    It excludes 0 exactly when `anytime_p` is below 1 - level.
    """
    # log(1 / alpha): a mean is outside of the interval from this log evidence on
    bar = -log(1 - level)
    if not len(differences):
        return -1.0, 1.0
    values, counts = np.unique(differences, return_counts=True)
    # inside: at the sample mean no bet has grown, as log is concave. Both ends are searched outwards from here.
    middle = float(np.average(values, weights=counts))

    # Each bet is worth a product of factors (1 - |b|) + |b| (1 ± d) / (1 ± mean), which is log-convex in the mean,
    # and so is the mixture: the means inside form an interval, and bisection finds its ends.
    def outside(mean: float) -> bool:
        return float(_mixed(counts @ _growth(values, mean))) >= bar

    return _edge(outside, -1.0, middle), _edge(outside, 1.0, middle)


def mean_interval(values: Column, *, most: float = 1.0, level: float = 0.95) -> tuple[float, float]:
    """The anytime-valid interval of the mean of values in [0, `most`]."""
    low, high = anytime_interval(2 * values / most - 1, level=level)
    return most * (1 + low) / 2, most * (1 + high) / 2


def share_interval(count: int, of: int, *, level: float = 0.95) -> tuple[float, float]:
    """The anytime-valid interval of a share, from `count` of `of` observations; `of` is above 0."""
    # the evidence does not depend on the order of the observations
    return mean_interval(np.repeat((1.0, 0.0), (count, of - count)), level=level)


def queries_needed(like: Column, *, alpha: float, margin: float | None, made: Column | None = None) -> int | None:
    """The total number of queries after which such differences give a verdict at `alpha` with a probability of 80 %.

    A verdict is that the mean is not 0 or, with a `margin`, that it is within that distance of 0. The growth of each
    bet is approximated as normal, and all bets as moving together.

    Args:
        like: Differences that further ones resemble: (n,) float64.
        alpha: The level of the test.
        margin: Differences up to this count as none; None tests for a difference only.
        made: Differences that are observed already; they count in the total.

    Returns:
        The number of queries, None when more than ten million would be needed.
    """
    if not len(like):
        return None
    bar, mean = -log(alpha), float(like.mean())
    aims = [[(0.0, POWER)]] if mean else []
    # union bound: each end may be missed with a probability of (1 - POWER) / 2
    if margin is not None and abs(mean) < margin:
        aims.append([(-margin, (1 + POWER) / 2), (margin, (1 + POWER) / 2)])  # both ends must be ruled out
    plans = [[_plan(like, against, chance, made) for against, chance in aim] for aim in aims]

    def settled(further: int) -> bool:
        return any(all(float(plan(further)) >= bar for plan in aim) for aim in plans)

    # double until it suffices, then bisect between the last two
    high = 1
    while not settled(high):
        high *= 2
        if high > _LONGEST:
            return None
    low = high // 2
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if settled(between) else (between, high)
    return high + (0 if made is None else len(made))


def _plan(like: Column, against: float, chance: float, made: Column | None) -> Callable[[int], float]:
    """Maps a number of further queries to the log evidence against a mean that they reach with this probability."""
    values, counts = np.unique(like, return_counts=True)
    growth, shares = _growth(values, against), counts / len(like)
    # drift, spread: (bets,) float64, mean and standard deviation of the log growth per query
    drift = shares @ growth
    spread = np.sqrt(np.maximum(shares @ (growth - drift) ** 2, 0.0))
    # the side of `against` that the mean is on: -1, 0 or 1
    away = np.sign(float(shares @ values) - against)
    # a bet in the direction of the mean grows less than planned with bad luck, the opposite one more
    luck = NormalDist().inv_cdf(chance) * away * np.sign(_BETS) * spread
    done = np.zeros(len(_BETS))
    if made is not None and len(made):
        values, counts = np.unique(made, return_counts=True)
        done = counts @ _growth(values, against)
    # normal approximation: growth = n * drift - sqrt(n) * luck
    return lambda further: float(_mixed(done + further * drift - sqrt(further) * luck))


def minimum_detectable_effect(differences: Column, *, alpha: float) -> float | None:
    """The smallest mean difference that this many queries with this spread show with a probability of 80 %.

    None where the differences have no spread, or where even the largest difference would not be detected yet.
    """
    if not len(differences) or np.ptp(differences) == 0:
        return None
    # the observed differences with another mean: clipped, since the bets assume [-1, 1]
    centred = differences - differences.mean()

    def hidden(effect: float) -> bool:
        return _plan(np.clip(centred + effect, -1.0, 1.0), 0.0, POWER, None)(len(differences)) < -log(alpha)

    return None if hidden(1.0) else _edge(hidden, 0.0, 1.0, _ROUGH)


def largest_loss(differences: Column, *, alpha: float) -> float:
    """The largest mean loss that is not ruled out, one-sided at `alpha`; 0 where a gain is shown, 1 without queries.

    With d in [-1, 1] and x = (1 + d) / 2 in [0, 1], bets against the hypothesis that the mean of x is at most m
    multiply the stake by 1 + b (x / m - 1) per query, 0 < b <= 1. Losses that none of these queries shows count too:
    about log(2 / alpha) / n remains where none of n queries loses.
    """
    values, counts = np.unique(differences, return_counts=True)

    # log of the mixture: the stake is divided over the bets by `_STAKED`, which sums to 1
    def possible(loss: float) -> bool:
        grown = counts @ _growth_against(values, loss) + np.log(_STAKED)
        return float(np.logaddexp.reduce(grown)) < -log(alpha)

    # a larger loss is easier to rule out, so the possible ones are an interval that begins at 0
    if possible(1.0):
        return 1.0
    return _edge(lambda loss: not possible(loss), 1.0, 0.0) if possible(0.0) else 0.0


def queries_to_rule_out(loss: float, like: Column, *, alpha: float) -> int | None:
    """The number of queries that rule out a mean loss of this size with a probability of 80 %, for differences like
    these.

    It is the minimum over the single bets, with normal growth. None where no bet grows.
    """
    growth = _growth_against(like, loss)
    found = []
    # each bet by itself has to turn its share of the stake into 1 / alpha
    for grown, share in zip(growth.T, _STAKED.tolist(), strict=True):
        mean, bar = float(grown.mean()), -log(alpha * share)
        if mean > 0:
            spread = NormalDist().inv_cdf(POWER) * float(grown.std())
            # solves n * mean - sqrt(n) * spread = bar for n
            found.append(((spread + sqrt(spread * spread + 4 * mean * bar)) / (2 * mean)) ** 2)
    return ceil(min(found)) if found else None


def _growth_against(values: Column, loss: float) -> Column:
    """float64[n, bets]: the log of the factor by which each one-sided bet against this loss multiplies its stake."""
    # a mean loss in terms of x = (1 + d) / 2
    middle = max((1 - loss) / 2, 1e-12)
    with np.errstate(divide="ignore"):  # the full bet loses everything with the first total loss
        growth: Column = np.log1p(_ONE_SIDED * ((1 + values[:, None]) / 2 / middle - 1))
    return growth


def median_interval(values: Column, *, level: float = 0.95) -> tuple[float, float] | None:
    """The anytime-valid interval of the median, between two of the values. None while there are too few."""
    low, high = quantile_interval(values, 0.5, level=level)
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


def quantile_interval(values: Column, share: float, *, level: float = 0.95) -> tuple[float, float]:
    """The anytime-valid interval of the quantile at `share`, between two of the values.

    An end is infinite while there are too few values.
    """
    ordered, n = np.sort(values), len(values)
    # the ends are order statistics: the least counts on either side that are not significantly small
    below, above = _fewest(n, share, 1 - level), _fewest(n, 1 - share, 1 - level)
    return float(ordered[below - 1]) if below else -np.inf, float(ordered[n - above]) if above else np.inf


def _fewest(n: int, share: float, alpha: float) -> int:
    """The smallest number of `n` values on a side that is not significantly below the expected share."""
    # values on the side count +1, the others -1: their mean is 2 share - 1
    growth = _growth(np.array((1.0, -1.0)), 2 * share - 1)

    def rare(count: int) -> bool:
        return float(_mixed(np.array((count, n - count)) @ growth)) >= -log(alpha)

    low, high = 0, ceil(share * n)  # the evidence falls from a count of 0 to the share, where it is 0
    while low < high:
        between = (low + high) // 2
        low, high = (between + 1, high) if rare(between) else (low, between)
    return low


def _growth(values: Column, mean: float) -> Column:
    """float64[n, bets]: the log of the factor by which each bet against `mean` multiplies its stake, for each value."""
    # 1 + b (d - mean) stays positive for d in [-1, 1]
    # largest bets: 1 / (1 + m) upwards, 1 / (1 - m) downwards; 1e-12 avoids dividing by 0 at m = ±1
    largest = np.where(_BETS > 0, 1 / max(1 + mean, 1e-12), 1 / max(1 - mean, 1e-12))
    growth: Column = np.log1p(_BETS * largest * (values[:, None] - mean))
    return growth


def _mixed(grown: Column) -> Column:
    """The log of the mean value of all bets, over the last axis."""
    mixed: Column = np.logaddexp.reduce(grown, axis=-1) - log(len(_BETS))
    return mixed


def _edge(beyond: Callable[[float], bool], far: float, near: float, steps: int = _STEPS) -> float:
    """Bisects for the point where `beyond` turns false between `far`, where it may be true, and `near`, where it is
    false."""
    if not beyond(far):
        return far
    for _ in range(steps):
        between = (far + near) / 2
        far, near = (between, near) if beyond(between) else (far, between)
    return near
