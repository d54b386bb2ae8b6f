from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from speckit_memory.evaluation.statistics.agreement import RankMove, agree, agree_each

RANKINGS = st.permutations(range(14)).flatmap(lambda rows: st.integers(0, 14).map(lambda n: rows[:n]))


def scored(ids: Sequence[int]) -> list[tuple[int, float]]:
    return [(row, 1.0 / rank) for rank, row in enumerate(ids, start=1)]


@pytest.mark.requirement("P5.shifts")
def test_an_agreement_names_what_moved_what_is_new_and_what_is_gone() -> None:
    found = agree([(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.5)], [(4, 0.95), (1, 0.9), (2, 0.6), (5, 0.1)])
    assert found.moves == (
        RankMove(1, 1, 2),
        RankMove(2, 2, 3),
        RankMove(3, 3, None),
        RankMove(4, 4, 1),
        RankMove(5, None, 4),
    )
    assert found.first_difference == 1


@pytest.mark.requirement("P5.ordering")
def test_an_order_that_is_the_same_is_told_from_scores_that_are_the_same() -> None:
    control = [(1, 0.9), (2, 0.8)]
    rounded = agree(control, [(1, 0.9 + 1e-15), (2, 0.8)])
    assert (rounded.ordering_difference, rounded.only_scores_differ) == (False, False)
    rescored = agree(control, [(1, 0.7), (2, 0.6)])
    assert (rescored.ordering_difference, rescored.only_scores_differ) == (False, True)
    swapped = agree(control, [(2, 0.9), (1, 0.8)])
    assert (swapped.ordering_difference, swapped.only_scores_differ) == (True, False)


@pytest.mark.requirement("P5.ordering")
@pytest.mark.parametrize(
    ("control", "variant", "rank"),
    [([1, 2], [1, 2], None), ([1, 2], [1, 3], 2), ([1, 2], [1], 2), ([], [1], 1), ([], [], None)],
)
def test_the_first_difference_is_the_rank_where_the_rankings_part(
    control: list[int], variant: list[int], rank: int | None
) -> None:
    found = agree(scored(control), scored(variant))
    assert (found.first_difference, found.ordering_difference) == (rank, rank is not None)


@pytest.mark.requirement("P5.tau")
def test_tau_b_counts_pairs_in_the_same_and_in_contrary_order() -> None:
    assert agree(scored([1, 2, 3]), scored([3, 2, 1])).kendall_tau_b == pytest.approx(-1)
    assert agree(scored([1, 2, 3]), scored([1, 3, 2])).kendall_tau_b == pytest.approx(1 / 3)  # 2 of 3 agree


@pytest.mark.requirement("P5.tau")
def test_what_a_ranking_lacks_is_tied_after_its_last_rank() -> None:
    # over 1 2 3 4: ranks 1 2 3 3 and 3 3 1 2; four pairs are in contrary order, one is tied in each: -4 / 5
    assert agree(scored([1, 2]), scored([3, 4])).kendall_tau_b == pytest.approx(-0.8)
    assert agree(scored([1, 2]), scored([1, 2, 3])).kendall_tau_b == pytest.approx(1)


def test_an_empty_ranking_has_no_order_to_agree_with() -> None:
    found = agree([], scored([1]))
    assert (found.kendall_tau_b, found.overlap_5, found.rbo) == (None, 0, 0)
    nothing = agree([], scored([]))
    assert (nothing.kendall_tau_b, nothing.overlap_10, nothing.rbo) == (1, 1, 1)


@pytest.mark.requirement("P5.tau")
@given(RANKINGS.filter(lambda rows: len(rows) > 1), RANKINGS.filter(bool))
def test_tau_b_is_that_of_scipy_over_all_rows_of_both(control: list[int], variant: list[int]) -> None:
    union = sorted({*control, *variant})
    ranks = [[ids.index(row) if row in ids else 99 for row in union] for ids in (control, variant)]
    expected = kendalltau(*ranks).statistic
    found = agree(scored(control), scored(variant)).kendall_tau_b
    assert found == pytest.approx(1.0 if control == variant else expected)


@pytest.mark.requirement("P5.overlap")
def test_overlap_reads_no_further_than_k_and_no_further_than_the_lists() -> None:
    assert agree(scored([1, 2, 3, 4, 5, 6]), scored([6, 1, 2, 9, 8, 3])).overlap_5 == 2 / 5
    assert agree(scored([1, 2, 3]), scored([3, 2, 1])).overlap_10 == 1, "two short lists that hold the same"
    assert agree(scored([1, 2]), scored([1, 2, 3, 4])).overlap_10 == 1 / 2


@pytest.mark.requirement("P5.overlap")
def test_ten_ranks_carry_86_percent_of_rank_biased_overlap() -> None:
    # Webber et al. 2010, section 4.4, equation 21: the weight of the first 10 ranks at p = 0.9
    first = list(range(10))
    agreed = agree(scored([*first, *range(100, 700)]), scored([*first, *range(1000, 1600)])).rbo
    assert agreed == pytest.approx(0.8556, abs=1e-4)


def by_definition(control: list[int], variant: list[int], p: Fraction) -> float:
    """Equation 32 of Webber et al. from sets alone, in fractions: the agreement at every depth to 600."""
    s, length = sorted((len(control), len(variant)))
    overlaps = [len(set(control[:depth]) & set(variant[:depth])) for depth in range(length + 1)]

    def agreement(depth: int) -> Fraction:
        if depth <= s:
            return Fraction(overlaps[depth], depth)
        below = min(depth, length)
        return (overlaps[below] + Fraction(overlaps[s], s) * (below - s)) / below

    return float((1 - p) / p * sum(agreement(depth) * p**depth for depth in range(1, 600)))


@pytest.mark.requirement("P5.overlap")
@given(RANKINGS.filter(bool), RANKINGS.filter(bool))
def test_rank_biased_overlap_is_that_of_its_definition(control: list[int], variant: list[int]) -> None:
    rbo = agree(scored(control), scored(variant)).rbo
    assert rbo == pytest.approx(by_definition(control, variant, Fraction(9, 10)))


@given(RANKINGS, RANKINGS)
def test_an_agreement_reads_the_same_from_both_sides(control: list[int], variant: list[int]) -> None:
    one, other = agree(scored(control), scored(variant)), agree(scored(variant), scored(control))
    assert (one.kendall_tau_b, one.rbo) == pytest.approx((other.kendall_tau_b, other.rbo))
    assert one.ordering_difference == (control != variant)


@given(st.lists(st.tuples(RANKINGS, RANKINGS), max_size=8))
def test_pairs_of_different_lengths_agree_together_as_each_does_alone(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    rankings = [(scored(control), scored(variant)) for control, variant in pairs]
    assert agree_each(rankings) == [agree(*both) for both in rankings]
