from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.lifecycle.fsrs import days_since, elapsed_multipliers, retrievability, stability_multipliers

days = st.floats(0, 1e5)
stability = st.floats(0.01, 1e5)


@pytest.mark.requirement("F6.fsrs")
def test_retrievability_is_nine_tenths_after_as_many_days_as_stability_counts() -> None:
    # (1 + 19/81)^-0.5 = (100/81)^-0.5 = 9/10
    column = retrievability(np.array([0.0, 1.0, 30.0, 243 / 19]), np.array([1.0, 1.0, 30.0, 1.0]))

    # the last: 19/81 · 243/19 = 3, and (1 + 3)^-0.5 = 1/2
    assert column == pytest.approx([1.0, 0.9, 0.9, 0.5])


@pytest.mark.requirement("F6.fsrs")
@pytest.mark.parametrize(
    ("elapsed", "stable", "expected"),
    [
        (7.0, 1.0, 0.615227),  # 1 + 133/81 = 214/81; √(81/214) = √.378505
        (10.0, 1.0, 0.546711),  # 1 + 190/81 = 271/81; √(81/271) = √.298893
        (30.0, 10.0, 0.766131),  # 1 + 57/81 = 138/81; √(81/138) = √.586957
        (90.0, 1.0, 0.212664),  # 1 + 1710/81 = 1791/81; √(81/1791) = √.045226
        (1.0, 100.0, 0.998829),  # 1 + .19/81 = 81.19/81; √(81/81.19) = √.997660
        (0.0, 1.0, 1.0),
    ],
)
def test_retrievability_follows_the_power_law(elapsed: float, stable: float, expected: float) -> None:
    assert retrievability(np.array([elapsed]), np.array([stable])) == pytest.approx([expected], abs=5e-7)


@given(days, days, stability)
def test_retrievability_falls_with_time_and_stays_within_zero_and_one(one: float, other: float, stable: float) -> None:
    early, late = retrievability(np.array(sorted((one, other))), np.array([stable, stable]))

    assert 0.0 < late <= early <= 1.0


def test_the_latest_known_event_counts_and_the_future_is_now() -> None:
    now, unknown = 10 * 86_400.0, np.nan
    reviewed = np.array([unknown, 9 * 86_400.0, unknown, now + 5])
    created = np.array([4 * 86_400.0, 86_400.0, unknown, 0.0])

    assert days_since(now, reviewed, created) == pytest.approx([6.0, 1.0, np.nan, 0.0], nan_ok=True)


@pytest.mark.requirement("F10")
def test_context_and_tier_multiply_stability() -> None:
    contexts = np.array(["decision", "research", "research", "general", "implementation", "general"], np.object_)
    tiers = np.array(["temporary", "important", "critical", "normal", "deprecated", "unheard of"], np.object_)

    # decision is infinite; 2 · 1.5; infinite by tier; 1 · 1; 1 · 0.25; what is not known counts 1
    assert stability_multipliers(contexts, tiers).tolist() == [np.inf, 3.0, np.inf, 1.0, 0.25, 1.0]


@pytest.mark.requirement("F10")
def test_infinite_stability_never_decays() -> None:
    assert retrievability(np.array([1e6]), np.array([np.inf])).tolist() == [1.0]


def test_tiers_multiply_elapsed_time() -> None:
    tiers = np.array(["constitutional", "critical", "important", "normal", "temporary", "deprecated"], np.object_)

    assert elapsed_multipliers(tiers).tolist() == [0.1, 0.3, 0.5, 1.0, 2.0, 3.0]
