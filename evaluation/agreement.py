"""How far two rankings of one query agree: rank correlation, overlap, where they part and what moved (feature P5).

Rankings come as (id, score) pairs, best first, without repeats. Ties of score are resolved by id when a ranking is
made, so that two rankings are the same exactly when their ids are, in the same order: that is what
`ordering_difference` tells, and everything else here measures how much it matters. No agreement says which is better.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, sqrt
from typing import Generic, TypeVar

import numpy as np

Id = TypeVar("Id", bound=Hashable)
"""What names a row: a memory's id or a document's key."""

PERSISTENCE = 0.9
"""The p of rank-biased overlap: how likely a reader goes on from one rank to the next. The first ten ranks then carry
86 % of the weight (Webber et al. 2010, section 4.4), which is what most answers hold."""

_NOISE = 1e-9
"""Scores within this relative distance are the same: sums in another order differ by so much."""


@dataclass(frozen=True, slots=True)
class Move(Generic[Id]):
    """Where a row stands in both rankings, from 1; None where it is absent."""

    id: Id
    before: int | None
    after: int | None

    @property
    def shift(self) -> int | None:
        """How many ranks it rose; below 0 where it fell, None where only one ranking has it."""
        return None if self.before is None or self.after is None else self.before - self.after


@dataclass(frozen=True, slots=True)
class Agreement(Generic[Id]):
    """Two rankings of one query, compared.

    `kendall_tau_b` [-1, 1] is taken over all rows of either ranking. A row that one ranking lacks counts there as tied
    with all others it lacks, after its last rank: both rankings put what they return above what they don't. 1 for equal
    rankings, None where one of them orders nothing because it is empty. `overlap_5` and `overlap_10` [0, 1]: common
    rows among the first k, as a share of the longer of both lists cut to k. `rbo` [0, 1] is rank-biased overlap,
    extrapolated, with the p of `PERSISTENCE`. `first_difference`: the first rank, from 1, at which they hold different
    rows or only one holds any, None if none. `moves` has every row in the order of the control, then what only the
    variant has. `score_deltas`: score in the variant minus score in the control of the common rows, comparable only
    where both pipelines score on one scale; `same_scores`: whether all are no more than rounding.
    """

    kendall_tau_b: float | None
    overlap_5: float
    overlap_10: float
    rbo: float
    first_difference: int | None
    moves: tuple[Move[Id], ...]
    score_deltas: Mapping[Id, float]
    same_scores: bool

    @property
    def ordering_difference(self) -> bool:
        """Whether the ids are others, or in another order."""
        return self.first_difference is not None

    @property
    def only_scores_differ(self) -> bool:
        """The same rows in the same order, with scores that differ by more than rounding."""
        return not self.ordering_difference and not self.same_scores

    def common(self, k: int = 10) -> tuple[int, int]:
        """How many rows both have among their first k, and how many the longer of the two has there."""
        seen = [(move.before, move.after) for move in self.moves]
        both = sum(before is not None and after is not None and max(before, after) <= k for before, after in seen)
        return both, min(k, max((rank for pair in seen for rank in pair if rank is not None), default=0))

    @property
    def only_control(self) -> tuple[Id, ...]:
        """What the variant does not return, in the order of the control."""
        return tuple(move.id for move in self.moves if move.after is None)

    @property
    def only_variant(self) -> tuple[Id, ...]:
        """What only the variant returns, in its order."""
        return tuple(move.id for move in self.moves if move.before is None)

    def biggest_moves(self, most: int = 5) -> tuple[Move[Id], ...]:
        """The rows that both return and that moved furthest, those that stood higher before first among equals."""
        moved = [(move, abs(move.shift)) for move in self.moves if move.shift]
        return tuple(move for move, _ in sorted(moved, key=lambda entry: -entry[1])[:most])


def agree(control: Sequence[tuple[Id, float]], variant: Sequence[tuple[Id, float]]) -> Agreement[Id]:
    """Compares the ranking of a variant with that of the control."""
    before = {row: rank for rank, (row, _) in enumerate(control, start=1)}
    after = {row: rank for rank, (row, _) in enumerate(variant, start=1)}
    scores, others = dict(control), dict(variant)
    old, new = list(before), list(after)
    union = [*old, *(row for row in new if row not in before)]
    return Agreement(
        kendall_tau_b=1.0
        if old == new
        else _tau_b(
            [before.get(row, len(before) + 1) for row in union], [after.get(row, len(after) + 1) for row in union]
        ),
        overlap_5=overlap(old, new, 5),
        overlap_10=overlap(old, new, 10),
        rbo=rank_biased_overlap(old, new),
        first_difference=_first_difference(old, new),
        moves=tuple(Move(row, before.get(row), after.get(row)) for row in union),
        score_deltas={row: others[row] - scores[row] for row in old if row in after},
        same_scores=all(isclose(scores[row], others[row], rel_tol=_NOISE) for row in old if row in after),
    )


def overlap(control: Sequence[Id], variant: Sequence[Id], k: int) -> float:
    """The share of rows that both have among their first k; 1 where both are empty."""
    old, new = set(control[:k]), set(variant[:k])
    longer = max(len(old), len(new))
    return len(old & new) / longer if longer else 1.0


def rank_biased_overlap(control: Sequence[Id], variant: Sequence[Id], p: float = PERSISTENCE) -> float:
    """Extrapolated rank-biased overlap of two rankings that may differ in length, in [0, 1].

    The agreement at each depth, weighted by (1 - p) p^(d - 1); beyond what was returned it is taken to stay as it is
    there (Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS 2010, equation 32). 1 where
    both are empty, 0 where one is.
    """
    shorter, longer = sorted((control, variant), key=len)
    if not shorter:
        return 0.0 if longer else 1.0
    s, seen_short, seen_long = len(shorter), set[Id](), set[Id]()
    total, common, at_s = 0.0, 0, 0
    for depth, row in enumerate(longer, start=1):
        seen_long.add(row)
        if depth <= s:
            other = shorter[depth - 1]
            seen_short.add(other)
            common += (other in seen_long) + (row in seen_short) - (row == other)
            at_s = common
        else:
            common += row in seen_short
        # Below its end the shorter ranking is taken to go on agreeing as it did down to there.
        agreed = (common + at_s * max(0, depth - s) / s) / depth
        total += agreed * p**depth
    return (1 - p) / p * total + agreed * p ** len(longer)


def _tau_b(before: Sequence[int], after: Sequence[int]) -> float | None:
    """Kendall's tau-b of two rank columns, None where one of them is all ties."""
    if len(set(before)) < 2 or len(set(after)) < 2:
        return None
    one, other = (np.sign(np.subtract.outer(ranks, ranks)) for ranks in (np.array(before), np.array(after)))
    return float((one * other).sum() / sqrt(np.count_nonzero(one) * np.count_nonzero(other)))


def _first_difference(control: Sequence[Id], variant: Sequence[Id]) -> int | None:
    for rank, (one, other) in enumerate(zip(control, variant, strict=False), start=1):
        if one != other:
            return rank
    return None if len(control) == len(variant) else min(len(control), len(variant)) + 1
