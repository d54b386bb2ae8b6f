from __future__ import annotations

from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.evaluation.significance import (
    DRAWS,
    bootstrap_interval,
    holm,
    minimum_detectable_effect,
    queries_needed,
    sign_flip_p,
)


def test_sign_flip_p_of_few_queries_is_exact() -> None:
    # of the 8 sign patterns of 1, 2, 4 only +++ and --- reach a sum of 7
    assert sign_flip_p(np.array([1.0, 2.0, 4.0]), seed=0) == 2 / 8
    # sums of -1, 2, 4: 5 observed; |±7|, |±5| are at least that large
    assert sign_flip_p(np.array([-1.0, 2.0, 4.0]), seed=0) == 4 / 8


def test_queries_without_a_difference_change_no_p() -> None:
    differences = np.array([0.1, 0.2, -0.05, 0.3])
    padded = np.concatenate([np.zeros(500), differences])
    assert sign_flip_p(padded, seed=0) == sign_flip_p(differences, seed=0)
    assert sign_flip_p(np.zeros(10), seed=0) == 1.0


def test_sums_that_differ_only_by_rounding_count_as_ties() -> None:
    # ±4 ±2 ±2 reaches at least |-4 -2 +2| = 4 in 6 of 8 patterns; in tenths, some of these sums fall short by rounding
    assert sign_flip_p(np.array([-0.4, -0.2, 0.2]), seed=0) == 6 / 8


def brute_force_p(differences: list[float]) -> float:
    """By definition, in whole numbers (the differences are eighths): the share of sign patterns with as large a sum."""
    eighths = [round(value * 8) for value in differences]
    sums = [abs(sum(sign * value for sign, value in zip(signs, eighths, strict=True)))
            for signs in product((1, -1), repeat=len(eighths))]  # fmt: skip
    return sum(each >= abs(sum(eighths)) for each in sums) / len(sums)


@given(st.lists(st.integers(-8, 8).map(lambda v: v / 8), min_size=1, max_size=9))
def test_p_of_few_queries_is_exact(differences: list[float]) -> None:
    assert sign_flip_p(np.array(differences), seed=0) == pytest.approx(brute_force_p(differences), abs=1e-12)


def test_random_p_is_near_that_of_the_normal_approximation_and_repeatable() -> None:
    differences = np.random.default_rng(5).normal(0.03, 0.3, 300)
    # the sum of ±d has mean 0 and variance Σd²
    distance = abs(differences.sum()) / np.sqrt((differences**2).sum())
    p = sign_flip_p(differences, seed=3)
    assert p == pytest.approx(2 * (1 - NormalDist().cdf(distance)), abs=0.02)
    assert p == sign_flip_p(differences, seed=3)


def test_p_is_never_zero() -> None:
    assert sign_flip_p(np.ones(100), seed=0) == 1 / (DRAWS + 1)


@pytest.mark.usefixtures("simulated")
def test_p_is_calibrated_where_nothing_differs() -> None:
    rng = np.random.default_rng(11)
    p_values = [sign_flip_p(rng.normal(0, 1, 12), seed=0) for _ in range(400)]
    # 400 draws of a rate of 0.05: within 0.0245..0.0755 by three standard errors and more
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08


def test_the_bootstrap_interval_is_that_of_the_normal_approximation_for_many_queries_and_repeatable() -> None:
    differences = np.random.default_rng(2).normal(0.1, 0.4, 200)
    low, high = bootstrap_interval(differences, seed=0)
    half = NormalDist().inv_cdf(0.975) * differences.std() / np.sqrt(200)
    assert (low, high) == pytest.approx((differences.mean() - half, differences.mean() + half), abs=0.005)
    assert (low, high) == bootstrap_interval(differences, seed=0)
    assert bootstrap_interval(differences, seed=0, level=0.5)[0] > low


def test_a_single_value_has_an_interval_of_no_width() -> None:
    assert bootstrap_interval(np.full(9, 0.25), seed=0) == (0.25, 0.25)
    assert bootstrap_interval(np.array([0.25]), seed=0) == (0.25, 0.25)


def test_holm_adjusts_p_values_as_worked_by_hand() -> None:
    # sorted .01 .02 .04 .30 times 4 3 2 1 = .04 .06 .08 .30, already rising
    assert holm([0.04, 0.01, 0.30, 0.02]) == pytest.approx([0.08, 0.04, 0.30, 0.06])
    # .01 x 3, then .02 x 2 = .04, then .021 x 1 would fall below and is held at .04
    assert holm([0.021, 0.02, 0.01]) == pytest.approx([0.04, 0.04, 0.03])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_raw_p_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for p, after in zip(p_values, adjusted, strict=True):
        assert p <= after <= max(p, min(1.0, p * len(p_values)))
    assert [after for _, after in sorted(zip(p_values, adjusted, strict=True))] == sorted(adjusted)


def test_queries_needed_equals_the_textbook_figure() -> None:
    # mean 1, standard deviation 2 (ddof 1): (1.95996 + 0.84162)² × 4 = 31.4
    differences = np.array([-1.0, 3.0, -1.0, 3.0]) * np.sqrt(3) / 2 + (1 - np.sqrt(3) / 2)
    assert (differences.mean(), differences.std(ddof=1)) == pytest.approx((1.0, 2.0))
    assert queries_needed(differences, alpha=0.05) == 32
    # at the minimum detectable effect, exactly these queries are needed: 2.80159 × 2 / √4
    assert minimum_detectable_effect(differences, alpha=0.05) == pytest.approx(2.80159, abs=1e-4)


def test_nothing_can_be_planned_from_no_difference_or_one_query() -> None:
    assert queries_needed(np.array([1.0, -1.0]), alpha=0.05) is None
    assert queries_needed(np.array([1.0]), alpha=0.05) is None
    assert minimum_detectable_effect(np.array([1.0]), alpha=0.05) is None
