"""Is a difference real when it is looked at again and again? Tests and intervals that hold at every look at once.

A live experiment is read whenever somebody likes, and goes on. Of tests made for a fixed number of queries, each look
is one more chance of a false verdict; what is here may be looked at after every query, and the chance that even one of
all looks, however many, says better or worse of two pipelines that are equal stays below the level.

It is a bet. Whoever thinks that the mean of the differences d in [-1, 1] is m is offered stakes on it, each new
difference multiplying what is staked by 1 + b (d - m): fair where m is the mean, so that the stake is never likely to
grow twentyfold (Ville 1939). The evidence against m is what an equal mixture of fixed bets b has become; m is in the
interval while that is below 1/level (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", JRSS B 2024; mixtures of fixed bets: Cover 1991, Orabona and Jun 2024). The evidence does not depend on the
order of the queries. Nothing is assumed of the differences but their bounds, and that they are a sample; a query on
which both pipelines do the same changes no evidence against 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log

import numpy as np

from speckit_memory.evaluation.significance import POWER
from speckit_memory.pipeline.ports import Column

_SIZES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99)
_BETS = np.array([*(-size for size in _SIZES), *_SIZES])
"""Bets as shares of the largest that cannot lose more than the stake: small effects are found by small ones."""

_PLANS = 1_000
"""Experiments that a plan simulates: the chance of a verdict is known to about 1.3 points."""
_LONGEST = 10_000_000
_STEPS = 40


def log_evidence(differences: Column, mean: float = 0.0) -> Column:
    """The natural logarithm of the evidence against `mean`, over the last axis of differences in [-1, 1].

    Above log 20 = 3.0 the mean is outside the 95 % interval. 0 for no differences.
    """
    values, of = np.unique(differences, return_inverse=True)
    grown: Column = _growth(values, mean)[of.reshape(differences.shape)].sum(axis=-2)
    return _mixed(grown)


def anytime_p(differences: Column) -> float:
    """Two-sided p of a mean of 0 that holds however often, and whenever, it is looked at."""
    return float(np.exp(-max(0.0, float(log_evidence(differences)))))


def anytime_interval(differences: Column, *, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean difference: at `level` it holds the mean at every look. It leaves out 0 exactly when
    `anytime_p` is below 1 - level; [-1, 1] for no differences."""
    bar = -log(1 - level)
    if not len(differences):
        return -1.0, 1.0
    values, counts = np.unique(differences, return_counts=True)
    middle = float(np.average(values, weights=counts))

    def outside(mean: float) -> bool:
        return float(_mixed(counts @ _growth(values, mean))) >= bar

    return _edge(outside, -1.0, middle), _edge(outside, 1.0, middle)


def share_interval(count: int, of: int, *, level: float = 0.95) -> tuple[float, float]:
    """The interval of a share of which `count` of so many are seen, above 0 of them: it holds it at every look."""
    low, high = anytime_interval(np.repeat((1.0, -1.0), (count, of - count)), level=level)
    return (1 + low) / 2, (1 + high) / 2


def queries_needed(like: Column, *, alpha: float, seed: int, made: Column | None = None) -> int | None:
    """After how many queries in all differences distributed as these give a verdict, with 80 % chance.

    Found by simulation: samples of `like`, with replacement, judged at `alpha`, on top of the differences of the
    queries already `made`. None when the mean of `like` is 0, or when more than ten million would be needed.
    """
    values, counts = np.unique(like, return_counts=True)
    if not len(values) or float(counts @ values) == 0:
        return None
    growth, shares = _growth(values, 0.0), counts / counts.sum()
    done = 0 if made is None else len(made)
    grown = 0.0 if made is None else _growth(made, 0.0).sum(axis=0)

    def shown(further: int) -> bool:
        drawn = np.random.default_rng(seed).multinomial(further, shares, size=_PLANS)
        return float(np.mean(_mixed(grown + drawn @ growth) >= -log(alpha))) >= POWER

    high = 1
    while not shown(high):
        high *= 2
        if high > _LONGEST:
            return None
    low = high // 2
    while high - low > max(1, high // 200):
        between = (low + high) // 2
        low, high = (low, between) if shown(between) else (between, high)
    return done + high


def minimum_detectable_effect(differences: Column, *, alpha: float, seed: int) -> float | None:
    """The smallest mean difference that this many queries, spread as these are, show with 80 % chance.

    None with fewer than two queries, or where even the largest difference would not be seen yet.
    """
    if len(differences) < 2:
        return None
    values, counts = np.unique(differences, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(differences), counts / counts.sum(), size=_PLANS)
    centred = values - float(np.average(values, weights=counts))

    def hidden(effect: float) -> bool:
        growth = _growth(np.clip(centred + effect, -1.0, 1.0), 0.0)
        return float(np.mean(_mixed(drawn @ growth) >= -log(alpha))) < POWER

    return None if hidden(1.0) else _edge(hidden, 0.0, 1.0)


def median_interval(values: Column, *, level: float = 0.95) -> tuple[float, float] | None:
    """The interval of the median that holds at every look: between two of the values. None while there are too few."""
    low, high = quantile_interval(values, 0.5, level=level)
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


def quantile_interval(values: Column, share: float, *, level: float = 0.95) -> tuple[float, float]:
    """The interval, holding at every look, of what this share of all values lies below: between two of the values.

    An end is infinite while there are too few to know it.
    """
    ordered, n = np.sort(values), len(values)
    below, above = _fewest(n, share, 1 - level), _fewest(n, 1 - share, 1 - level)
    return float(ordered[below - 1]) if below else -np.inf, float(ordered[n - above]) if above else np.inf


def _fewest(n: int, share: float, alpha: float) -> int:
    """How many of `n` values can lie on a side where this share of all does, as seldom as that may be."""
    growth = _growth(np.array((1.0, -1.0)), 2 * share - 1)

    def rare(count: int) -> bool:
        return float(_mixed(np.array((count, n - count)) @ growth)) >= -log(alpha)

    low, high = 0, ceil(share * n)  # the evidence falls from none of them to the share, where there is none
    while low < high:
        between = (low + high) // 2
        low, high = (between + 1, high) if rare(between) else (low, between)
    return low


def _growth(values: Column, mean: float) -> Column:
    """float64[n, bets]: the logarithm of what each bet against `mean` multiplies its stake by, for each value."""
    largest = np.where(_BETS > 0, 1 / max(1 + mean, 1e-12), 1 / max(1 - mean, 1e-12))
    growth: Column = np.log1p(_BETS * largest * (values[:, None] - mean))
    return growth


def _mixed(grown: Column) -> Column:
    """The logarithm of the mean over all bets, the last axis, of what they have become."""
    mixed: Column = np.logaddexp.reduce(grown, axis=-1) - log(len(_BETS))
    return mixed


def _edge(beyond: Callable[[float], bool], far: float, near: float) -> float:
    """Where `beyond` turns false between `far`, where it may be true, and `near`, where it is false."""
    if not beyond(far):
        return far
    for _ in range(_STEPS):
        between = (far + near) / 2
        far, near = (between, near) if beyond(between) else (far, between)
    return near
