"""What was learned by tasks, with known answers."""

from __future__ import annotations

import pytest

from speckit_memory.memory.lifecycle.epistemic import (
    LearningSummary,
    TaskLearning,
    TaskScores,
    band,
    learning_index,
    summary,
)


@pytest.mark.requirement("M15.index")
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((40, 60, 50), (80, 20, 70), TaskLearning(40, 40, 20, 35.0)),  # 16 + 14 + 5
        ((0, 100, 0), (100, 0, 100), TaskLearning(100, 100, 100, 100.0)),
        ((100, 0, 100), (0, 100, 0), TaskLearning(-100, -100, -100, -100.0)),
        ((50, 50, 50), (60, 50, 50), TaskLearning(10, 0, 0, 4.0)),
        ((50, 50, 50), (50, 60, 50), TaskLearning(0, -10, 0, -3.5)),  # who is less sure than before has lost
        ((50, 50, 50), (50, 50, 60), TaskLearning(0, 0, 10, 2.5)),
        ((1, 1, 1), (2, 0, 0), TaskLearning(1, 1, -1, 0.5)),
    ],
)
def test_the_index_weighs_what_was_gained(
    before: tuple[int, int, int], after: tuple[int, int, int], expected: TaskLearning
) -> None:
    assert learning_index(TaskScores(*before), TaskScores(*after)) == expected


@pytest.mark.requirement("M15.bands")
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (100.0, "significant"), (40.0, "significant"), (39.99, "moderate"), (15.0, "moderate"),
        (14.99, "incremental"), (5.0, "incremental"), (4.99, "execution-focused"), (0.0, "execution-focused"),
        (-0.01, "regression"), (-100.0, "regression"),
    ],
)  # fmt: skip
def test_a_border_belongs_to_the_band_above_it(index: float, expected: str) -> None:
    assert band(index) == expected


def of(*indexes: float) -> list[TaskLearning]:
    return [TaskLearning(2, 4, 6, index) for index in indexes]


@pytest.mark.requirement("M15.trend")
@pytest.mark.parametrize(
    ("indexes", "trend"),
    [
        ((), "unknown"),
        ((0.0, 50.0, 99.0), "unknown"),
        ((10.0, 10.0, 15.0, 15.0), "stable"),  # five more is no news
        ((10.0, 10.0, 15.1, 15.1), "improving"),
        ((15.1, 15.1, 10.0, 10.0), "declining"),
        ((10.0, 10.0, 99.0, 10.0, 10.0), "stable"),  # the one in the middle is in neither half
    ],
)
def test_the_trend_compares_the_later_half_with_the_earlier_one(indexes: tuple[float, ...], trend: str) -> None:
    assert summary(9, of(*indexes)).trend == trend


@pytest.mark.requirement("M15.trend")
def test_means_are_of_complete_tasks_and_nothing_where_there_are_none() -> None:
    assert summary(3, of(10.0, 15.5)) == LearningSummary(3, 2, 2.0, 4.0, 6.0, 12.75, "unknown")
    assert summary(3, []) == LearningSummary(3, 0, None, None, None, None, "unknown")
