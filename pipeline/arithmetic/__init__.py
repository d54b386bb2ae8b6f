"""Arithmetic on score columns that more than one component needs. NaN means "no score" and stays NaN."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column, Ids

D = TypeVar("D", bound=np.generic)


def min_max(scores: Column) -> Column:
    """Scores mapped linearly to [0, 1]; 1.0 for each when all are equal or there is only one (feature F4)."""
    known = scores[~np.isnan(scores)]
    if not len(known):
        return scores.copy()
    low, high = known.min(), known.max()
    if low == high:
        return np.where(np.isnan(scores), np.nan, 1.0)
    return np.asarray((scores - low) / (high - low))


def standardise(scores: Column) -> Column:
    """Standard scores (z-scores) with the population's standard deviation; 0.0 for each if all are equal."""
    there = ~np.isnan(scores)
    # z = (x - mean) / σ, with the population's σ (ddof = 0)
    known = scores[there]
    standard = scores.copy()
    if not len(known):
        return standard
    # Rounding gives equal scores a tiny deviation, which must not be amplified.
    if (known == known[0]).all():
        standard[there] = 0.0
        return standard
    mean, largest, spread = moments(known)
    # two divisions: the product of both divisors may be too small for a float
    standard[there] = (known - mean) / largest / spread
    return standard


def moments(scores: Column) -> tuple[float, float, float]:
    """Mean of unequal scores, the largest distance from it, and the standard deviation as a share of that distance.

    In two steps, because squares of very small or very large numbers are not representable.
    """
    # Sums by the ufunc itself: `mean` and `max` of an array take several times as long for a few rows.
    mean = np.add.reduce(scores) / len(scores)
    centred = scores - mean
    largest = np.maximum.reduce(np.abs(centred))
    unit = centred / largest
    return float(mean), float(largest), sqrt(np.add.reduce(unit * unit) / len(unit))


def logistic(scores: Column) -> Column:
    """1 / (1 + e^-score): maps any number to (0, 1), and 0 to 0.5."""
    # np.exp overflows beyond 709
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0))))


def idf(frequency: Column, count: int) -> Column:
    """log((N - df + 0.5) / (df + 0.5) + 1) for df = `frequency` and N = `count`; always positive."""
    # The Robertson–Spärck Jones weight is negative for df > N / 2; the 1 inside of the logarithm prevents that.
    return np.asarray(np.log((count - frequency + 0.5) / (frequency + 0.5) + 1.0))


def matched_passages(ids: Ids, passages: Ids | None) -> Ids:
    """The best matching passage of each row, or the row itself if it is unknown (-1, or None for all)."""
    return ids if passages is None else np.where(passages >= 0, passages, ids)


def best_of(raw: Column, channels: Sequence[str], wanted: Container[str]) -> Column:
    """Best score of each row over the wanted channels, float64[n]; NaN for a row that none of them returned.

    `raw` is float64[n, searches]; `channels` names the channel of each search.
    """
    of_wanted = raw[:, [channel in wanted for channel in channels]]
    # np.fmax ignores NaN, and `initial` is the answer without a column
    best: Column = np.fmax.reduce(of_wanted, axis=1, initial=np.nan)
    return best


def row_sums(parts: Column) -> Column:
    """The sum of each row, float64[n], added left to right, as the frame adds the parts of a fuser."""
    total = np.zeros(len(parts))
    for column in range(parts.shape[1]):
        total = total + parts[:, column]
    return total


def leading(scores: Column, limit: int) -> NDArray[np.intp]:
    """Rows of the `limit` highest scores and of all that tie with the last of them, unordered. NaN is not allowed."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    cut = len(scores) - limit
    # element `cut` is the lowest of the `limit` highest scores; a partition takes O(n)
    parted = scores.copy()
    parted.partition(cut)
    rows: NDArray[np.intp] = (scores >= parted[cut]).nonzero()[0]
    return rows


def distinct(ids: NDArray[D]) -> NDArray[D]:
    """The distinct values, ascending. `np.unique` on a few rows takes five times as long, and imports `numpy.ma`."""
    ordered = ids.copy()
    ordered.sort()
    found: NDArray[D] = ordered[first_of_runs(ordered)]
    return found


def first_of_runs(values: NDArray[D]) -> NDArray[np.bool_]:
    """Marks the first of each run of equal values."""
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def best_of_each(owners: Ids, *keys: NDArray[np.int64] | Column) -> NDArray[np.intp]:
    """The first row of each owner in the order of these keys, by owner, ascending; the last key sorts first.

    Of rows that are equal in all of them the first counts.
    """
    order = np.lexsort((*keys, owners))
    best: NDArray[np.intp] = order[first_of_runs(owners[order])]
    return best


def positions(wanted: Ids, ids: Ids) -> NDArray[np.intp]:
    """The index of each wanted id in distinct `ids`, -1 if it is not there."""
    if not len(ids):
        return np.full(len(wanted), -1, np.intp)
    if (ids[1:] > ids[:-1]).all():  # true for a store until its first change; sorting would take most of the time
        at = np.minimum(ids.searchsorted(wanted), len(ids) - 1)
    else:
        order = np.argsort(ids)
        at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where(ids[at] == wanted, at, -1)
