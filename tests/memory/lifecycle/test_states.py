from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.lifecycle.states import STATES, UNKNOWN, Thresholds, states


def named(recalled: list[float], idle: float = 0.0, tier: str = "normal") -> list[str]:
    tiers = np.array([tier] * len(recalled), np.object_)
    places = states(np.array(recalled), np.full(len(recalled), idle), tiers, Thresholds())
    return ["unknown" if place == UNKNOWN else STATES[place].value for place in places]


@pytest.mark.requirement("M3.borders")
def test_a_state_begins_above_its_threshold() -> None:
    assert named([1.0, 0.81, 0.80, 0.26, 0.25, 0.06, 0.05, 0.021, 0.02]) == [
        "HOT", "HOT", "WARM", "WARM", "COLD", "COLD", "DORMANT", "DORMANT", "ARCHIVED",
    ]  # fmt: skip


@pytest.mark.requirement("M3.idle")
def test_more_than_ninety_idle_days_archive() -> None:
    assert named([0.9], idle=90.0) == ["HOT"]
    assert named([0.9], idle=90.1) == ["ARCHIVED"]


@pytest.mark.requirement("M3")
@pytest.mark.parametrize("tier", ["constitutional", "critical"])
def test_protected_tiers_are_always_hot(tier: str) -> None:
    assert named([0.01, np.nan], idle=400.0, tier=tier) == ["HOT", "HOT"]


def test_a_memory_without_events_has_no_state() -> None:
    assert named([np.nan]) == ["unknown"]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_a_memory_that_is_recalled_better_is_never_colder(recalled: list[float]) -> None:
    places = states(np.array(sorted(recalled)), np.zeros(2), np.array(["normal"] * 2, np.object_), Thresholds())

    assert places[0] >= places[1]
