"""Bounds on how much two answers can differ on a metric under any judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, MARGIN
from speckit_memory.evaluation.statistics.sequential import largest_loss, queries_needed, queries_to_rule_out
from speckit_memory.memory.store.evaluation.records import RecordedPair
from speckit_memory.pipeline.ports import Column

WORTH = 0.02
"""A difference worth detecting."""
# least number of simulated differences from which queries are planned
_ENOUGH = 2_000
_GOLDEN = (5**0.5 - 1) / 2
_TEN, _FIVE = 10, 5
# by rank from 0: (11,) float64; an absent memory has rank -1 and reads the 0 that is appended
_DISCOUNTS = np.append(1 / np.log2(np.arange(2, _TEN + 2)), 0.0)
_IDEAL = np.cumsum(_DISCOUNTS[:-1])
_RECIPROCALS = np.append(1 / np.arange(1, _FIVE + 1), np.zeros(_TEN + 1 - _FIVE))


@dataclass(frozen=True, slots=True)
class LabelFree:
    """The largest possible difference of two pipelines on one metric, in either direction, under any judgements.

    Both answered `questions`; on `differing` of these a judgement could matter. `mean` is the largest mean difference
    over these questions, `bound` the one over all questions like these, one-sided at the level of the report.
    `queries_needed`: about how many questions show a difference of `planned`; where the mean is too small to be of
    interest under any judgements, about how many show that without judgements.
    """

    metric: str
    questions: int
    differing: int
    mean: float
    bound: float
    queries_needed: int | None

    @property
    def planned(self) -> float:
        """The difference planned for before anything is judged: one worth detecting, or a quarter of the largest
        one."""
        return min(WORTH, self.mean / 4)


def label_free(differing: Sequence[Sequence[RecordedPair]], alike: int, *, alpha: float) -> tuple[LabelFree, ...]:
    """The bounds on each compared metric, from the questions with different answers and the number of those `alike`."""
    control, shown = _first_ten([first.control.memories for first, *_ in differing])
    variant, others = _first_ten([first.variant.answer.memories for first, *_ in differing])
    # same: (questions, rank in the control, rank in the variant) bool
    same = (control[:, :, None] == variant[:, None, :]) & shown[:, :, None] & others[:, None, :]
    after = np.where(same.any(axis=2), same.argmax(axis=2), _TEN)
    new = others & ~same.any(axis=1)

    def moves(gains: Column) -> Column:
        """float64[questions, 20]: the gain of each memory in the variant minus that in the control, 0 for padding."""
        return np.hstack([np.where(shown, gains[after] - gains[:_TEN], 0.0), np.where(new, gains[:_TEN], 0.0)])

    sizes = _largest_gain(moves(_DISCOUNTS)), _largest_reciprocal(moves(_RECIPROCALS))
    return tuple(
        _bounded(metric, np.append(size, np.zeros(alike)), alpha)
        for metric, size in zip(COMPARED_METRICS, sizes, strict=True)
    )


def _first_ten(rankings: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The first ten memories of each ranking, and which of these there are."""
    filled = np.arange(_TEN) < np.fromiter(map(len, rankings), np.intp, len(rankings))[:, None]
    memories = np.zeros(filled.shape, np.int64)
    memories[filled] = np.fromiter(chain.from_iterable(one[:_TEN] for one in rankings), np.int64)
    return memories, filled


def _bounded(metric: str, most: Column, alpha: float) -> LabelFree:
    mean, bound = float(most.mean()), largest_loss(-most, alpha=alpha)
    # no judgements could show a difference of interest: plan for showing that
    if mean <= MARGIN:
        needed = queries_to_rule_out(MARGIN, -most, alpha=alpha)
    else:
        needed = queries_needed(_planned(most), alpha=alpha, margin=None)
    return LabelFree(metric, len(most), int((most > 0).sum()), mean, bound, needed)


def _planned(most: Column) -> Column:
    """Simulated differences with mean `LabelFree.planned`, evenly spread up to the largest ones; a matching share
    are gains."""
    # every: at least `_ENOUGH` differences, the observed ones repeated, ascending
    every = np.sort(np.tile(most, 1 + _ENOUGH // len(most)))
    place = np.arange(1, len(every) + 1)
    # multiples of the golden ratio modulo 1 are evenly spread in [0, 1)
    spread = every * (place * _GOLDEN % 1)
    # the number of gains among the first `place` differences: its steps mark them
    gains = np.floor(place * (1 + min(2 * WORTH / float(most.mean()), 0.5)) / 2)
    planned: Column = np.where(np.diff(gains, prepend=0.0) > 0, spread, -spread)
    return planned


def _largest_gain(moves: Column) -> Column:
    """The largest differences in nDCG@10.

    The normalised gain is largest with equal grades for some memories and 0 for all others: those that one answer moves
    up most.
    """
    return np.maximum(_best(moves), _best(-moves))


def _best(moves: Column) -> Column:
    up = np.sort(np.maximum(moves, 0.0), axis=1)[:, : -_TEN - 1 : -1]
    # k equally relevant memories: the sum of the k largest moves by the ideal gain of k
    best: Column = (np.cumsum(up, axis=1) / _IDEAL).max(axis=1, initial=0.0)
    return best


def _largest_reciprocal(moves: Column) -> Column:
    """The largest differences in MRR@5: exactly one memory is relevant."""
    largest: Column = np.abs(moves).max(axis=1, initial=0.0)
    return largest
