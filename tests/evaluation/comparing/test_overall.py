"""One verdict over several datasets, after a correction over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from speckit_memory.evaluation.comparing.overall import overall
from speckit_memory.evaluation.comparison import Comparison


@dataclass(frozen=True)
class Report:
    """What is read of a report: how many queries, and a difference with its p on either metric."""

    dataset: str
    comparisons: tuple[Comparison, ...]
    queries: tuple[str, ...] = tuple(map(str, range(100)))


def report(name: str, delta: float, p: float) -> Report:
    half = 0.004 if not delta else abs(delta) / 2
    return Report(name, tuple(
        Comparison("a", "b", metric, delta, (delta - half, delta + half), p, p, "undecided", None, None)
        for metric in ("nDCG@10", "MRR@5")
    ))  # fmt: skip


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("given", "each", "verdict"),
    [
        ([("x", 0.1, 0.001), ("y", 0.0, 1.0)], ["better", "same"], "better"),
        ([("x", -0.1, 0.001), ("y", 0.1, 0.9)], ["worse", "undecided"], "worse"),
        ([("x", 0.1, 0.001), ("y", -0.1, 0.001)], ["better", "worse"], "undecided"),
        ([("x", 0.0, 1.0), ("y", 0.0, 1.0)], ["same", "same"], "same"),
        ([("x", 0.1, 0.02), ("y", 0.1, 0.02)], ["undecided", "undecided"], "undecided"),  # by itself each is better
    ],
)
def test_what_some_sets_show_and_none_contradicts_is_the_verdict(
    given: list[tuple[str, float, float]], each: list[str], verdict: str
) -> None:
    [found] = overall([report(*one) for one in given])  # type: ignore[misc]
    assert [one for _, one in found.sets] == each
    assert found.verdict == verdict
    assert all(f"{word} on {name}" in found.sentence for name, word in found.sets)
