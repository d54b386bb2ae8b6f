"""The borders between better, same and undecided."""

from __future__ import annotations

import pytest

from speckit_memory.evaluation.comparison import verdict_of

ENOUGH, FEW = 50, 49


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("delta", "interval", "p", "queries", "verdict"),
    [
        (0.1, (0.0, 0.2), 0.0499, FEW, "better"),
        (-0.1, (-0.2, 0.0), 0.0499, FEW, "worse"),
        (0.1, (0.0, 0.2), 0.05, ENOUGH, "undecided"),
        (0.0, (-0.005, 0.005), 0.05, ENOUGH, "same"),
        (0.0, (-0.0051, 0.005), 1.0, ENOUGH, "undecided"),
        (0.0, (-0.005, 0.0051), 1.0, ENOUGH, "undecided"),
        (0.0, (-0.005, 0.005), 1.0, FEW, "undecided"),
    ],
)
def test_a_verdict_changes_at_its_border(
    delta: float, interval: tuple[float, float], p: float, queries: int, verdict: str
) -> None:
    assert verdict_of(delta, interval, p, queries) == verdict
