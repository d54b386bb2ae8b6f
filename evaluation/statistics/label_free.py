"""Bounds on how much two answers can differ on a metric under any judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

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
# _IDEAL[k - 1]: discounted gain of k documents of grade 1 in ideal order
_IDEAL = np.cumsum(_DISCOUNTS)
_RECIPROCALS = np.append(1 / np.arange(1, _FIVE + 1), 0.0)


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
    return tuple(_bounded(metric, _sizes(differing, alike, metric), alpha) for metric in COMPARED_METRICS)


def _sizes(differing: Sequence[Sequence[RecordedPair]], alike: int, metric: str) -> Column:
    """float64[questions]: the largest difference of each question."""
    most = _largest_gain if metric == COMPARED_METRICS[0] else _largest_reciprocal
    depth = _TEN if metric == COMPARED_METRICS[0] else _FIVE
    found = [most(*_places(one.control.memories[:depth], one.variant.answer.memories[:depth])) for one, *_ in differing]
    # equal answers differ under no judgements: zeros
    return np.append(found, np.zeros(alike))


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


def _places(control: Sequence[int], variant: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """The rank in the variant of each memory of the control, -1 if absent, and the length of the variant."""
    place = {memory: rank for rank, memory in enumerate(variant)}
    return tuple(place.get(memory, -1) for memory in control), len(variant)


@lru_cache(maxsize=65_536)
def _largest_gain(places: tuple[int, ...], length: int) -> float:
    """The largest difference in nDCG@10.

    The normalised gain is largest with equal grades for some memories and 0 for all others: those that one answer moves
    up most.
    """
    shown = np.array(places, np.intp)
    # ranks in the variant of the memories that only it returns
    new = np.setdiff1d(np.arange(length), shown)
    # moved: change of discount per memory, variant minus control; absent memories have the discount 0 at index -1
    moved = np.concatenate([_DISCOUNTS[shown] - _DISCOUNTS[: len(shown)], _DISCOUNTS[new]])
    return max(_best(moved), _best(-moved))


def _best(moved: Column) -> float:
    up = np.sort(moved[moved > 0])[::-1]
    # k equally relevant memories: the sum of the k largest moves by the ideal gain of k
    return float((np.cumsum(up) / _IDEAL[: len(up)]).max()) if len(up) else 0.0


@lru_cache(maxsize=65_536)
def _largest_reciprocal(places: tuple[int, ...], length: int) -> float:
    """The largest difference in MRR@5: exactly one memory is relevant."""
    shown = np.array(places, np.intp)
    new = np.setdiff1d(np.arange(length), shown)
    moved = np.concatenate([_RECIPROCALS[shown] - _RECIPROCALS[: len(shown)], _RECIPROCALS[new]])
    return float(np.abs(moved).max(initial=0.0))
