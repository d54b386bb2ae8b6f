"""The borders between better, same and undecided."""

from __future__ import annotations

import pytest

from speckit_memory.evaluation.statistics.comparison import verdict_of


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.0001, 0.2), "better"),
        ((-0.2, -0.0001), "worse"),
        ((0.0, 0.2), "undecided"),
        ((-0.005, 0.005), "same"),
        ((-0.0051, 0.005), "undecided"),
        ((-0.005, 0.0051), "undecided"),
        ((0.001, 0.004), "better"),
    ],
)
def test_a_verdict_changes_at_its_border(interval: tuple[float, float], verdict: str) -> None:
    assert verdict_of(interval) == verdict
