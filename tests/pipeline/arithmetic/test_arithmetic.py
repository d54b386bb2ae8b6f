from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from speckit_memory.pipeline.arithmetic import distinct, leading, logistic, min_max, positions, row_sums, standardise

COLUMNS = nps.arrays(np.float64, st.integers(0, 8), elements=st.floats(-1e9, 1e9) | st.just(np.nan))
KNOWN = nps.arrays(np.float64, st.integers(0, 8), elements=st.floats(-1e9, 1e9))


@pytest.mark.requirement("F4")
def test_scores_are_mapped_linearly_and_equal_ones_become_one() -> None:
    assert min_max(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]
    assert min_max(np.array([7.0])).tolist() == [1.0]
    assert min_max(np.array([7.0, 7.0])).tolist() == [1.0, 1.0]
    assert min_max(np.array([])).tolist() == []
    assert min_max(np.array([np.nan, 5.0])).tolist() == pytest.approx([np.nan, 1.0], nan_ok=True)


@pytest.mark.requirement("F4")
@given(COLUMNS)
def test_min_max_stays_in_the_unit_interval_and_keeps_gaps_and_order(scores: np.ndarray) -> None:
    mapped = min_max(scores)

    known = ~np.isnan(scores)
    assert np.array_equal(np.isnan(mapped), ~known)
    assert np.all((mapped[known] >= 0.0) & (mapped[known] <= 1.0))
    assert np.all(np.diff(mapped[known][np.argsort(scores[known])]) >= 0.0)
    assert not known.any() or mapped[known].max() == 1.0


def test_standardising_measures_in_deviations_from_the_mean() -> None:
    assert standardise(np.array([1.0, 3.0])).tolist() == [-1.0, 1.0]
    assert standardise(np.array([5.0, 5.0, 5.0])).tolist() == [0.0, 0.0, 0.0]
    assert standardise(np.array([np.nan, 1.0, 3.0])).tolist() == pytest.approx([np.nan, -1.0, 1.0], nan_ok=True)
    assert standardise(np.array([np.nan])).tolist() == pytest.approx([np.nan], nan_ok=True)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_the_size_of_scores_does_not_matter(size: float) -> None:
    assert standardise(np.array([1.0, 3.0]) * size).tolist() == pytest.approx([-1.0, 1.0])


@given(COLUMNS)
def test_standardised_scores_are_finite_where_scores_are(scores: np.ndarray) -> None:
    assert np.array_equal(np.isfinite(standardise(scores)), ~np.isnan(scores))


@given(KNOWN)
def test_the_logistic_map_stays_between_zero_and_one(scores: np.ndarray) -> None:
    mapped = logistic(scores)

    assert np.all((mapped >= 0.0) & (mapped <= 1.0))
    assert logistic(np.array([0.0])).tolist() == [0.5]


def test_rows_are_summed_left_to_right() -> None:
    table = np.array([[1e16, 1.0, -1e16], [0.1, 0.2, 0.3]])

    assert row_sums(table).tolist() == [1e16 + 1.0 - 1e16, 0.1 + 0.2 + 0.3]
    assert row_sums(np.empty((2, 0))).tolist() == [0.0, 0.0]


@given(KNOWN, st.integers(1, 10))
def test_leading_rows_are_the_best_and_all_that_tie_with_the_last(scores: np.ndarray, limit: int) -> None:
    rows = set(leading(scores, limit).tolist())

    least = sorted(scores, reverse=True)[:limit][-1] if len(scores) else 0.0
    assert rows == {row for row, score in enumerate(scores) if score >= least}


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 12)))
def test_positions_tell_where_an_id_stands(ids: list[int], wanted: list[int]) -> None:
    found = positions(np.array(wanted, np.int64), np.array(ids, np.int64))

    assert found.tolist() == [ids.index(i) if i in ids else -1 for i in wanted]


@given(st.lists(st.integers(-5, 5)))
def test_distinct_values_ascend_and_are_all_there(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
