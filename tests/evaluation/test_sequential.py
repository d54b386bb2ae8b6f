"""The errors and the power of the sequential test, measured: every figure here is one that reports rely on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    largest_loss,
    log_evidence,
    median_interval,
    minimum_detectable_effect,
    quantile_interval,
    queries_needed,
    queries_to_rule_out,
)
from speckit_memory.pipeline.ports import Column

EXPERIMENTS, QUERIES = 1_000, 300
SHOWN = -np.log(0.05)
Draw = Callable[[np.random.Generator, tuple[int, int]], Column]


def ndcg(ahead: float) -> Draw:
    """Half of the queries the same, the others a little better or worse: `ahead` of them better."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Column:
        signs = np.where(rng.random(shape) < ahead, 1.0, -1.0)
        drawn: Column = (rng.random(shape) < 0.5) * signs * np.round(rng.beta(1, 3, shape), 3)
        return drawn

    return draw


def hit(rng: np.random.Generator, shape: tuple[int, int]) -> Column:
    """One query in five is hit by one of both pipelines only."""
    return rng.choice([-1.0, 0.0, 1.0], shape, p=[0.1, 0.8, 0.1])


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Column:
    """Seldom much better, often a little worse, of mean 0: tests of symmetry take it for a difference."""
    return rng.choice([0.5, -0.1, 0.0], shape, p=[0.1, 0.5, 0.4])


def ever_shown(differences: Column, every: int) -> Column:
    """Which experiments gave a verdict at a look after each `every` queries, up to the last."""
    shown = np.zeros(len(differences), bool)
    for queries in range(every, differences.shape[1] + 1, every):
        shown |= log_evidence(differences[:, :queries]) >= SHOWN
    return shown


@pytest.mark.requirement("P5.peeking")
@pytest.mark.parametrize(
    ("draw", "queries", "every"),
    [(ndcg(0.5), QUERIES, 5), (hit, QUERIES, 5), (skewed, QUERIES, 5), (ndcg(0.5), 120, 1)],
)
@pytest.mark.usefixtures("simulated")
def test_of_a_thousand_experiments_on_equal_pipelines_few_ever_call_one_better(
    draw: Draw, queries: int, every: int
) -> None:
    differences = draw(np.random.default_rng(42), (EXPERIMENTS, queries))
    assert ever_shown(differences, every=every).mean() <= 0.05


def test_a_test_for_a_fixed_number_of_queries_would_be_wrong_more_often() -> None:
    differences = ndcg(0.5)(np.random.default_rng(42), (EXPERIMENTS, QUERIES))
    wrong = np.zeros(EXPERIMENTS, bool)
    for queries in range(20, QUERIES + 1, 20):
        seen = differences[:, :queries]
        wrong |= np.abs(seen.mean(axis=1)) > 1.96 * seen.std(axis=1, ddof=1) / np.sqrt(queries)
    assert wrong.mean() > 0.15


@pytest.mark.requirement("P5.power")
@pytest.mark.parametrize("ahead", [0.65, 0.75])
@pytest.mark.usefixtures("simulated")
def test_a_known_effect_is_shown_as_often_as_was_planned(ahead: float) -> None:
    rng = np.random.default_rng(5)
    population = ndcg(ahead)(rng, (1, 5_000))[0]
    needed = queries_needed(population, alpha=0.05, margin=None)
    assert needed is not None
    shown = log_evidence(ndcg(ahead)(rng, (EXPERIMENTS, needed))) >= SHOWN
    assert shown.mean() == pytest.approx(0.80, abs=0.05)


@pytest.mark.requirement("P5.power")
def test_what_a_report_says_is_still_missing_is_what_it_takes_from_there() -> None:
    rng = np.random.default_rng(11)
    made = ndcg(0.65)(rng, (1, 100))[0]
    needed = queries_needed(made, alpha=0.025, margin=None, made=made)
    assert anytime_p(made) > 0.025
    assert needed is not None
    further = rng.choice(made, (EXPERIMENTS, needed - len(made)))
    whole = np.hstack([np.tile(made, (EXPERIMENTS, 1)), further])
    assert (log_evidence(whole) >= -np.log(0.025)).mean() == pytest.approx(0.80, abs=0.05)


def test_the_detectable_effect_is_shown_as_often_as_was_planned() -> None:
    rng = np.random.default_rng(12)
    made = ndcg(0.5)(rng, (1, QUERIES))[0]
    effect = minimum_detectable_effect(made, alpha=0.05)
    assert effect is not None
    shifted = np.clip(rng.choice(made - made.mean(), (EXPERIMENTS, QUERIES)) + effect, -1, 1)
    assert (log_evidence(shifted) >= SHOWN).mean() == pytest.approx(0.80, abs=0.05)


def test_the_interval_holds_the_mean_at_every_look() -> None:
    rng = np.random.default_rng(9)
    mean = 0.05 * 0.5 * 0.25 * 2  # what ndcg(0.55) has on average
    missed = sum(
        any(not low <= mean <= high for low, high in (anytime_interval(row[:look]) for look in range(20, 161, 20)))
        for row in ndcg(0.55)(rng, (120, 160))
    )
    assert missed <= 6


@given(st.lists(st.integers(-10, 10), min_size=1, max_size=60))
def test_the_interval_leaves_out_zero_exactly_when_p_is_small(tenths: list[int]) -> None:
    differences = np.array(tenths) / 10
    low, high = anytime_interval(differences)
    assert -1 <= low <= differences.mean() + 1e-9
    assert differences.mean() - 1e-9 <= high <= 1
    if abs(anytime_p(differences) - 0.05) > 1e-6:
        assert (anytime_p(differences) < 0.05) == (low > 0 or high < 0)


@given(st.lists(st.integers(-10, 10), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_neither_order_nor_queries_without_a_difference_matter(tenths: list[int], random: Random) -> None:
    differences = np.array(tenths) / 10
    shuffled = np.array(random.sample(tenths, len(tenths))) / 10
    assert anytime_p(differences) == pytest.approx(anytime_p(shuffled))
    assert anytime_p(differences) == pytest.approx(anytime_p(np.append(differences, np.zeros(30))))
    assert anytime_p(differences) == pytest.approx(anytime_p(-differences))


def test_the_evidence_is_what_the_bets_have_become() -> None:
    bets = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99])
    bets = np.concatenate([-bets, bets])
    differences = np.array([0.5, 0.0, 1.0, 0.3])
    worked = np.mean([np.prod(1 + bet * differences) for bet in bets])
    assert float(log_evidence(differences)) == pytest.approx(np.log(worked))
    assert anytime_p(differences) == pytest.approx(min(1.0, 1 / worked))


def test_the_median_lies_between_two_values_that_a_fair_coin_allows() -> None:
    values = np.arange(1.0, 102.0)
    found = median_interval(values)
    assert found is not None
    low, high = found
    assert low - 1 == 101 - high, "symmetric"
    assert 2 * binom.cdf(low - 2, 101, 0.5) < 0.05, "no narrower than for a single look"
    assert 25 < low < 40


def test_too_little_is_no_evidence() -> None:
    nothing = np.empty(0)
    assert (anytime_p(nothing), anytime_interval(nothing)) == (1.0, (-1.0, 1.0))
    assert median_interval(np.array([3.0, 4.0])) is None
    assert queries_needed(np.zeros(9), alpha=0.05, margin=None) is None
    assert minimum_detectable_effect(np.array([0.1]), alpha=0.05) is None
    assert minimum_detectable_effect(np.zeros(300), alpha=0.05) is None
    assert minimum_detectable_effect(np.array([0.1, -0.1]), alpha=0.05) is None


def test_the_interval_of_a_high_quantile_holds_it_at_every_look() -> None:
    rng = np.random.default_rng(21)
    missed, closed = 0, 0
    for row in rng.exponential(1.0, (120, 300)):
        found = [quantile_interval(row[:look], 0.95) for look in range(25, 301, 25)]
        missed += any(not low <= -np.log(0.05) <= high for low, high in found)
        closed += np.isfinite(found[-1][1])
    assert missed <= 6
    assert closed > 100  # 300 queries are enough to say something


@pytest.mark.requirement("E8.hidden")
@pytest.mark.parametrize("gain", [0.0, 0.1, 1.0])
def test_queries_that_lose_nothing_do_not_rule_out_rare_losses(gain: float) -> None:
    few = np.r_[np.zeros(19), gain]
    assert 0.1 < largest_loss(few, alpha=0.05) < 0.17
    assert largest_loss(np.tile(few, 50), alpha=0.05) < largest_loss(few, alpha=0.05) / 10


def test_a_loss_that_one_query_in_twenty_has_hides_no_oftener_than_in_five_of_a_hundred_draws() -> None:
    chance = np.random.default_rng(5)

    def missed(draw: Column, loss: float) -> bool:
        return largest_loss(draw, alpha=0.05) < loss

    rare = [np.where(chance.random(40) < 0.05, -1.0, 0.02) for _ in range(400)]
    spread = [chance.choice([-0.5, 0.0, 0.25], 60, p=[0.2, 0.5, 0.3]) for _ in range(400)]
    assert np.mean([missed(draw, 0.05 - 0.95 * 0.02) for draw in rare]) <= 0.05
    assert np.mean([missed(draw, 0.025) for draw in spread]) <= 0.05


def test_many_small_losses_hide_little_more_than_they_are_and_a_gain_hides_none() -> None:
    small = np.where(np.arange(1_000) % 3 == 0, -0.01, 0.0)
    assert 0.0033 < largest_loss(small, alpha=0.05) < 0.01
    assert largest_loss(np.full(200, 0.1), alpha=0.05) == 0.0
    assert largest_loss(np.array([-1.0, -1.0]), alpha=0.05) == pytest.approx(1.0)


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_as_many_queries_as_are_said_to_be_needed_rule_the_margin_out(gain: float) -> None:
    few = np.r_[np.zeros(19), gain]
    needed = queries_to_rule_out(0.02, few, alpha=0.05)
    assert needed is not None
    assert needed > 100
    assert largest_loss(np.resize(few, needed), alpha=0.05) <= 0.02
    assert largest_loss(np.resize(few, needed // 2), alpha=0.05) > 0.02
    assert queries_to_rule_out(0.02, np.full(50, -0.2), alpha=0.05) is None
