"""Measures how far two rankings of one query agree: rank correlation, overlap, first difference, moves (feature P5).

Rankings are (id, score) pairs, best first, without repeats. Ties in score are resolved by id when a ranking is made,
so two rankings are equal exactly when their ids are equal and in the same order. `ordering_difference` tests that;
the other measures say how much a difference matters. Agreement does not say which ranking is better.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb, isclose, sqrt
from typing import Generic, TypeVar

Id = TypeVar("Id", bound=Hashable)
"""Identifies a row: the id of a memory or the key of a document."""

PERSISTENCE = 0.9
"""The p of rank-biased overlap: the probability that a reader goes on from one rank to the next. The first ten ranks,
which hold most answers, then carry 86 % of the weight (Webber et al. 2010, section 4.4)."""

_NOISE = 1e-9
"""Relative tolerance for equal scores; the order of summation causes differences of this size."""


@dataclass(frozen=True, slots=True)
class RankMove(Generic[Id]):
    """The ranks of a row in both rankings, from 1; None where it is absent."""

    id: Id
    before: int | None
    after: int | None

    @property
    def shift(self) -> int | None:
        """How many ranks it rose; below 0 where it fell, None where only one ranking has it."""
        return None if self.before is None or self.after is None else self.before - self.after


@dataclass(frozen=True, slots=True)
class Agreement(Generic[Id]):
    """The comparison of two rankings of one query.

    `kendall_tau_b` [-1, 1] is taken over all rows of either ranking. A row that one ranking lacks counts there as tied
    with all other missing rows, after its last rank: both rankings put the rows they return above those they don't. It
    is 1 for equal rankings and None where one ranking is empty. `overlap_5` and `overlap_10` [0, 1]: common rows among
    the first k, as a share of the longer of both lists cut to k. `rbo` [0, 1] is extrapolated rank-biased overlap with
    p = `PERSISTENCE`. `first_difference`: the first rank, from 1, at which the rankings hold different rows or only one
    holds a row; None if there is none. `control` and `variant` map rows to scores, best first. `same_scores`: whether
    the scores of common rows differ by no more than rounding. `common_rows` counts these rows; `shifted` is the sum of
    their absolute rank shifts.
    """

    control: Mapping[Id, float]
    variant: Mapping[Id, float]
    kendall_tau_b: float | None
    overlap_5: float
    overlap_10: float
    rbo: float
    first_difference: int | None
    same_scores: bool
    common_rows: int
    shifted: int

    @property
    def moves(self) -> tuple[RankMove[Id], ...]:
        """Every row, in the order of the control, followed by the rows that only the variant has."""
        before, after = _ranks(self.control), _ranks(self.variant)
        return tuple(RankMove(row, before.get(row), after.get(row)) for row in {**before, **after})

    @property
    def score_deltas(self) -> Mapping[Id, float]:
        """Variant score minus control score of the common rows; comparable only on the same scale."""
        return {row: self.variant[row] - score for row, score in self.control.items() if row in self.variant}

    @property
    def ordering_difference(self) -> bool:
        """Whether the ids or their order differ."""
        return self.first_difference is not None

    @property
    def only_scores_differ(self) -> bool:
        """The same rows in the same order, with scores that differ by more than rounding."""
        return not self.ordering_difference and not self.same_scores

    def common(self, k: int = 10) -> tuple[int, int]:
        """The number of rows that both have among their first k, and the number that the longer ranking has there."""
        seen = [(move.before, move.after) for move in self.moves]
        both = sum(before is not None and after is not None and max(before, after) <= k for before, after in seen)
        return both, min(k, max((rank for pair in seen for rank in pair if rank is not None), default=0))

    @property
    def only_control(self) -> tuple[Id, ...]:
        """The rows that the variant does not return, in the order of the control."""
        return tuple(move.id for move in self.moves if move.after is None)

    @property
    def only_variant(self) -> tuple[Id, ...]:
        """The rows that only the variant returns, in its order."""
        return tuple(move.id for move in self.moves if move.before is None)

    def biggest_moves(self, most: int = 5) -> tuple[RankMove[Id], ...]:
        """The common rows that moved furthest; ties are in the order of the control."""
        moved = [(move, abs(move.shift)) for move in self.moves if move.shift]
        return tuple(move for move, _ in sorted(moved, key=lambda entry: -entry[1])[:most])


def agree(control: Sequence[tuple[Id, float]], variant: Sequence[tuple[Id, float]]) -> Agreement[Id]:
    """Compares the ranking of a variant with that of the control."""
    scores, others = dict(control), dict(variant)
    # relative, because the scores of different pipelines have different magnitudes
    same_scores = scores == others or all(
        isclose(score, others[row], rel_tol=_NOISE) for row, score in scores.items() if row in others
    )
    # equal rankings are the common case and need no measures
    first = _first_difference(list(scores), list(others))
    if first is None:
        return Agreement(scores, others, 1.0, 1.0, 1.0, 1.0, None, same_scores, len(scores), 0)
    before, after = _ranks(scores), _ranks(others)
    common = _common(before, after)
    return Agreement(
        control=scores,
        variant=others,
        kendall_tau_b=_tau_b(before, after),
        overlap_5=_overlap(common, len(before), len(after), 5),
        overlap_10=_overlap(common, len(before), len(after), 10),
        rbo=_rank_biased_overlap(common, len(before), len(after)),
        first_difference=first,
        same_scores=same_scores,
        common_rows=common[-1],
        shifted=sum(abs(rank - after[row]) for row, rank in before.items() if row in after),
    )


def overlap(control: Sequence[Id], variant: Sequence[Id], k: int) -> float:
    """The share of rows that both have among their first k; 1 where both rankings are empty."""
    return _overlap(_common(_ranks(control), _ranks(variant)), len(control), len(variant), k)


def rank_biased_overlap(control: Sequence[Id], variant: Sequence[Id], p: float = PERSISTENCE) -> float:
    """Extrapolated rank-biased overlap of two rankings that may differ in length, in [0, 1].

    The agreement at each depth d is weighted by (1 - p) p^(d - 1); beyond the end of the rankings it is taken to stay
    constant (Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS 2010, equation 32). 1 where
    both are empty, 0 where one is.
    """
    return _rank_biased_overlap(_common(_ranks(control), _ranks(variant)), len(control), len(variant), p)


def _ranks(ranking: Iterable[Id]) -> dict[Id, int]:
    return {row: rank for rank, row in enumerate(ranking, start=1)}


def _common(before: Mapping[Id, int], after: Mapping[Id, int]) -> list[int]:
    """The number of common rows down to each depth, from depth 0."""
    counts = [0] * (max(len(before), len(after)) + 1)
    # counts[d]: common rows whose deeper rank is d; the running sum is the overlap of both prefixes of length d
    for row, rank in before.items():
        if (other := after.get(row)) is not None:
            counts[max(rank, other)] += 1
    return list(accumulate(counts))


def _overlap(common: Sequence[int], control: int, variant: int, k: int) -> float:
    # divided by the longer of both cut lists, so that a short answer cannot reach 1 by being short
    longer = min(k, max(control, variant))
    return common[longer] / longer if longer else 1.0


def _rank_biased_overlap(common: Sequence[int], control: int, variant: int, p: float = PERSISTENCE) -> float:
    s, longer = sorted((control, variant))
    if not s:
        return 0.0 if longer else 1.0
    # Webber et al. 2010, equation 32, with A_d for the agreement at depth d and l for the longer length: (1 - p) / p
    # * sum of A_d p^d, d = 1 … l, + A_l p^l
    total = agreed = 0.0
    weight = 1.0
    for depth in range(1, longer + 1):
        # Beyond its end the shorter ranking is taken to keep the agreement that it had there.
        agreed = (common[depth] + common[s] * max(0, depth - s) / s) / depth
        weight *= p
        total += agreed * weight
    return (1 - p) / p * total + agreed * weight


def _tau_b(before: Mapping[Id, int], after: Mapping[Id, int]) -> float | None:
    """Kendall's tau-b over the rows of either ranking, None where one of them is empty.

    Only rows that a ranking lacks are tied, so discordant pairs are counted by inserting the ranks of the variant in
    the order of the control: tau_b = (concordant - discordant) / sqrt(untied pairs of control * untied pairs of
    variant).
    """
    # a row missing from the variant has the tied rank len(after) + 1
    absent, ranks, swapped = len(after) + 1, list[int](), 0
    for row in before:
        rank = after.get(row, absent)
        # Every rank already inserted that is greater makes a discordant pair.
        swapped += len(ranks) - bisect(ranks, rank)
        insort(ranks, rank)
    # rows missing from the control are tied after its last rank, so they are not compared with one another
    entered = [rank for row, rank in after.items() if row not in before]
    swapped += sum(len(ranks) - bisect(ranks, rank) for rank in entered)
    # all pairs, minus those tied in each ranking
    every = comb(len(before) + len(entered), 2)
    # len(ranks) + len(entered) is the size of the union: minus len(after), the rows that the variant lacks
    control, variant = every - comb(len(entered), 2), every - comb(len(ranks) + len(entered) - len(after), 2)
    if not (control and variant):
        return None
    # concordant - discordant: pairs untied in both are control + variant - every
    alike = control + variant - every - 2 * swapped
    # rounding can leave the quotient just outside of [-1, 1]
    return max(-1.0, min(1.0, alike / sqrt(control) / sqrt(variant)))


def _first_difference(control: Sequence[Id], variant: Sequence[Id]) -> int | None:
    for rank, (one, other) in enumerate(zip(control, variant, strict=False), start=1):
        if one != other:
            return rank
    return None if len(control) == len(variant) else min(len(control), len(variant)) + 1
