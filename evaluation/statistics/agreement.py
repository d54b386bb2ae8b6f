"""Measures how far two rankings of one query agree: rank correlation, overlap, first difference, moves (feature P5).

Rankings are (id, score) pairs, best first, without repeats. Ties in score are resolved by id when a ranking is made,
so two rankings are equal exactly when their ids are equal and in the same order. `ordering_difference` tests that;
the other measures say how much a difference matters. Agreement does not say which ranking is better.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import isclose
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

Id = TypeVar("Id", bound=Hashable)
"""Identifies a row: the id of a memory or the key of a document."""

PERSISTENCE = 0.9
"""The p of rank-biased overlap: the probability that a reader goes on from one rank to the next. The first ten ranks,
which hold most answers, then carry 86 % of the weight (Webber et al. 2010, section 4.4)."""

_NOISE = 1e-9
"""Relative tolerance for equal scores; the order of summation causes differences of this size."""
_Counts = NDArray[np.intp]
_AT_ONCE = 2**17
"""Number of ranks measured at once; in pairs of similar length, as all are padded to the longest ranking."""


@dataclass(frozen=True, slots=True)
class RankMove(Generic[Id]):
    """The ranks of a row in both rankings, from 1; None where it is absent."""

    id: Id
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Agreement(Generic[Id]):
    """The comparison of two rankings of one query.

    `kendall_tau_b` [-1, 1] is taken over all rows of either ranking. A row that one ranking lacks counts there as tied
    with all other missing rows, after its last rank: both rankings put the rows they return above those they don't. It
    is 1 for equal rankings and None where one ranking is empty. `overlap_5` and `overlap_10` [0, 1]: common rows among
    the first k, as a share of the longer of both lists cut to k. `rbo` [0, 1] is extrapolated rank-biased overlap with
    p = `PERSISTENCE`. `first_difference`: the first rank, from 1, at which the rankings hold different rows or only one
    holds a row; None if there is none. `control` and `variant` map rows to scores, best first. `common_rows` counts the
    rows of both; `shifted` is the sum of their absolute rank shifts.
    """

    control: Mapping[Id, float]
    variant: Mapping[Id, float]
    kendall_tau_b: float | None
    overlap_5: float
    overlap_10: float
    rbo: float
    first_difference: int | None
    common_rows: int
    shifted: int

    @property
    def moves(self) -> tuple[RankMove[Id], ...]:
        """Every row, in the order of the control, followed by the rows that only the variant has."""
        before, after = _ranks(self.control), _ranks(self.variant)
        return tuple(RankMove(row, before.get(row), after.get(row)) for row in {**before, **after})

    @property
    def ordering_difference(self) -> bool:
        """Whether the ids or their order differ."""
        return self.first_difference is not None

    @property
    def only_scores_differ(self) -> bool:
        """The same rows in the same order, with scores that differ by more than rounding."""
        return not (
            self.ordering_difference
            or self.control == self.variant
            or all(isclose(score, self.variant[row], rel_tol=_NOISE) for row, score in self.control.items())
        )

    def common(self, k: int = 10) -> tuple[int, int]:
        """The number of rows that both have among their first k, and the number that the longer ranking has there."""
        seen = [(move.before, move.after) for move in self.moves]
        both = sum(before is not None and after is not None and max(before, after) <= k for before, after in seen)
        return both, min(k, max((rank for pair in seen for rank in pair if rank is not None), default=0))


def agree(control: Sequence[tuple[Id, float]], variant: Sequence[tuple[Id, float]]) -> Agreement[Id]:
    """Compares the ranking of a variant with that of the control."""
    return agree_each([(control, variant)])[0]


def agree_each(pairs: Iterable[tuple[Iterable[tuple[Id, float]], Iterable[tuple[Id, float]]]]) -> list[Agreement[Id]]:
    """Compares many pairs of rankings, those of the control and of the variant for each query."""
    scored = [(dict(control), dict(variant)) for control, variant in pairs]
    found: list[Any] = []
    differing: list[int] = []
    for place, (control, variant) in enumerate(scored):
        # equal rankings are the common case and need no measures
        if list(control) == list(variant):
            found.append(Agreement(control, variant, 1.0, 1.0, 1.0, 1.0, None, len(control), 0))
        else:
            found.append(None)
            differing.append(place)
    differing.sort(key=lambda place: max(map(len, scored[place])), reverse=True)
    while differing:
        count = max(1, _AT_ONCE // max(map(len, scored[differing[0]])))
        places, differing = differing[:count], differing[count:]
        for place, measures in zip(places, _measures([scored[place] for place in places]), strict=True):
            found[place] = Agreement(*scored[place], *measures)
    return found


def mean_tau(agreements: Iterable[Agreement[Any]]) -> float | None:
    """The mean Kendall tau-b over the pairs in which neither ranking is empty; None without such a pair."""
    taus = [one.kendall_tau_b for one in agreements if one.kendall_tau_b is not None]
    return float(np.mean(taus)) if taus else None


def _ranks(ranking: Iterable[Id]) -> dict[Id, int]:
    return {row: rank for rank, row in enumerate(ranking, start=1)}


def _measures(pairs: Sequence[tuple[Mapping[Id, float], Mapping[Id, float]]]) -> Iterator[tuple[Any, ...]]:
    """The measures of pairs of rankings that differ, in the order of the fields of `Agreement`."""
    # lengths: (n, 1); after: (n, width), the index in the variant of each row of the control, -1 where it is absent
    control, variant = (np.array([[len(pair[side])] for pair in pairs]) for side in (0, 1))
    longer, shorter = np.maximum(control, variant), np.minimum(control, variant)
    depths = np.arange(longer.max())
    filled = depths < control
    after = np.full(filled.shape, -1)
    indexes = (map(dict(zip(new, range(len(new)), strict=True)).get, old, repeat(-1)) for old, new in pairs)
    after[filled] = np.fromiter(chain.from_iterable(indexes), np.intp, int(control.sum()))
    query, before = np.nonzero(after >= 0)
    reached = after[query, before]
    # common: (n, width + 1), the number of common rows down to each depth, from depth 0
    common = np.zeros((len(pairs), len(depths) + 1), np.intp)
    np.add.at(common, (query, np.maximum(before, reached) + 1), 1)
    common = common.cumsum(axis=1)
    entered = depths < variant
    entered[query, reached] = False
    columns = (
        _tau_b(np.where((after < 0) & filled, variant, after), entered, common[:, -1:], control, variant),
        *(_of_row(common, np.minimum(longer, k)) / np.minimum(longer, k) for k in (5, 10)),
        _rank_biased_overlap(common, shorter, longer),
        # beyond the end of the control, -1 is a difference too
        np.argmax(np.pad(after, ((0, 0), (0, 1)), constant_values=-1) != np.arange(len(depths) + 1), axis=1) + 1,
        common[:, -1],
        np.bincount(query, np.abs(before - reached), len(pairs)).astype(np.intp),
    )
    return zip(*(np.ravel(column).tolist() for column in columns), strict=True)


def _of_row(table: _Counts, places: _Counts) -> _Counts:
    """(n, 1): the value of each row of a table at its place."""
    return np.take_along_axis(table, places, axis=1)


def _rank_biased_overlap(common: _Counts, shorter: _Counts, longer: _Counts) -> Column:
    """(n, 1): extrapolated rank-biased overlap of rankings that may differ in length, in [0, 1].

    The agreement at each depth d is weighted by (1 - p) p^(d - 1); beyond the end of the rankings it is taken to stay
    constant (Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS 2010, equation 32). 0 where
    one ranking is empty.
    """
    total, agreed, last = (np.zeros(longer.shape) for _ in range(3))
    weight, shared = 1.0, _of_row(common, shorter)
    for depth in range(1, common.shape[1]):
        inside = depth <= longer
        # Beyond its end the shorter ranking is taken to keep the agreement that it had there.
        kept = shared * np.maximum(0, depth - shorter) / np.maximum(1, shorter)
        agreed = np.where(inside, (common[:, depth : depth + 1] + kept) / depth, agreed)
        weight *= PERSISTENCE
        last = np.where(inside, weight, last)
        total = np.where(inside, total + agreed * weight, total)
    return np.where(shorter > 0, (1 - PERSISTENCE) / PERSISTENCE * total + agreed * last, 0.0)


def _tau_b(
    after: _Counts, entered: NDArray[np.bool_], common: _Counts, control: _Counts, variant: _Counts
) -> NDArray[np.object_]:
    """(n, 1): Kendall's tau-b over the rows of either ranking, None where one of them is empty.

    Only rows that a ranking lacks are tied: tau_b = (concordant - discordant) / sqrt(untied pairs of control * untied
    pairs of variant).

    Args:
        after: (n, width), the index in the variant of each row of the control, `variant` where absent, -1 for padding.
        entered: (n, width), whether the row of the variant at this index is absent from the control.
        common: (n, 1), the number of common rows.
        control: (n, 1), the length of the control.
        variant: (n, 1), the length of the variant.
    """
    swapped = np.zeros(control.shape, np.intp)
    for place in range(after.shape[1]):
        # Every earlier row of the control that has a greater rank in the variant makes a discordant pair.
        later = after[:, place : place + 1]
        swapped += np.sum(after[:, :place] > later, axis=1, keepdims=True) * (later >= 0)
        # Rows missing from the control are tied after its last rank, so they are not compared with one another.
        swapped += np.sum(after > place, axis=1, keepdims=True) * entered[:, place : place + 1]
    # all pairs, minus those tied in each ranking
    every = _pairs(control + variant - common)
    untied, others = every - _pairs(variant - common), every - _pairs(control - common)
    # concordant - discordant: pairs untied in both are untied + others - every
    alike = untied + others - every - 2 * swapped
    known = (untied > 0) & (others > 0)
    tau: Column = np.clip(alike / np.sqrt(np.where(known, untied, 1)) / np.sqrt(np.where(known, others, 1)), -1.0, 1.0)
    found = tau.astype(object)
    found[~known] = None
    return found


def _pairs(count: _Counts) -> _Counts:
    return count * (count - 1) // 2
