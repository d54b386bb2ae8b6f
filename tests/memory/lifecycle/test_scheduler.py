"""How grades change a memory, by figures worked out by hand, and its curve beside that of `fsrs`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate

import fsrs
import numpy as np
import pytest

from speckit_memory.memory.lifecycle.fsrs import retrievability
from speckit_memory.memory.lifecycle.scheduler import Grade, Strength, interval, review_strength

PUBLISHED = fsrs.Scheduler(
    parameters=(*fsrs.Scheduler().parameters[:-1], 0.5), enable_fuzzing=False, learning_steps=(), relearning_steps=()
)
"""FSRS 6 with the decay that versions 4.5 and 5 have had, the one our curve is of."""


@pytest.mark.requirement("M2.curve")
@pytest.mark.parametrize("stability", [0.5, 1.0, 7.3, 120.0])
def test_the_curve_is_that_of_the_published_scheduler(stability: float) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    card = fsrs.Card(stability=stability, difficulty=5.0, state=fsrs.State.Review, last_review=since)
    days = [0, 1, 2, 9, 90, 400]
    theirs = [PUBLISHED.get_card_retrievability(card, since + timedelta(days=day)) for day in days]
    assert retrievability(np.array(days, np.float64), np.full(len(days), stability)) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.requirement("M2.interval")
@pytest.mark.parametrize("stability", [1.0, 2.4, 30.0, 365.0])
@pytest.mark.parametrize("retention", [0.8, 0.9, 0.95])
def test_the_interval_is_that_of_the_published_scheduler_which_counts_whole_days(
    stability: float, retention: float
) -> None:
    theirs = fsrs.Scheduler(
        parameters=PUBLISHED.parameters, desired_retention=retention, enable_fuzzing=False, learning_steps=()
    )
    since = datetime(2026, 1, 1, tzinfo=UTC)
    card = fsrs.Card(stability=stability, difficulty=5.0, state=fsrs.State.Review, last_review=since)
    reviewed_card, _ = theirs.review_card(card, fsrs.Rating.Good, since)
    assert reviewed_card.stability is not None
    ours = interval(reviewed_card.stability, retention)
    assert max(1, round(ours)) == (reviewed_card.due - since).days


@pytest.mark.requirement("M2.interval")
def test_after_as_many_days_as_the_stability_counts_nine_tenths_are_recalled() -> None:
    for stability in (0.1, 1.0, 12.5, 36_500.0):
        assert interval(stability) == pytest.approx(stability)
        assert retrievability(np.array([interval(stability)]), np.array([stability])) == pytest.approx([0.9])


@pytest.mark.requirement("M2.grades")
def test_the_four_grades_change_a_new_memory_that_is_nine_tenths_recalled_by_the_catalogue() -> None:
    # 1 + (11 - 5) · 0.1 = 1.6; 1 + 0.5 · (1 - 0.9) = 1.05; 1.6 · 1.05 = 1.68
    after = {grade: review_strength(Strength(), grade, 0.9) for grade in Grade}
    assert [round(after[grade].stability, 9) for grade in Grade] == [0.2, 1.344, 1.68, 2.184]
    assert [after[grade].difficulty for grade in Grade] == [6.0, 5.5, 5.0, 4.5]


@pytest.mark.requirement("M2.grades")
def test_a_run_of_reviews_comes_to_what_was_worked_out_by_hand() -> None:
    reviews = [(Grade.GOOD, 1.0), (Grade.EASY, 0.8), (Grade.HARD, 0.5), (Grade.AGAIN, 0.3), (Grade.GOOD, 0.9)]
    run = list(accumulate(reviews, lambda now, one: review_strength(now, *one), initial=Strength()))
    # 1 · 1.6 · 1 · 1;  1.6 · 1.6 · 1.3 · 1.1;  3.6608 · 1.65 · 0.8 · 1.25;  · 0.2;  1.2080640 · 1.5 · 1 · 1.05
    stabilities = [1.0, 1.6, 3.6608, 6.04032, 1.208064, 1.9027008]
    assert [one.stability for one in run] == pytest.approx(stabilities, abs=1e-9)
    assert [one.difficulty for one in run] == [5.0, 5.0, 4.5, 5.0, 6.0, 6.0]


@pytest.mark.requirement("M2.bounds")
def test_stability_and_difficulty_keep_to_their_bounds() -> None:
    low = high = Strength()
    for _ in range(60):
        low, high = review_strength(low, Grade.AGAIN, 0.0), review_strength(high, Grade.EASY, 0.0)
    assert (low, high) == (Strength(0.1, 10.0), Strength(36_500.0, 1.0))
