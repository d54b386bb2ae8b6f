"""One verdict over several datasets, after a correction over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from speckit_memory.evaluation.comparing.compare_report import overall
from speckit_memory.evaluation.statistics.comparison import Comparison, Values, compare

QUERIES = 2_000


@dataclass(frozen=True)
class Report:
    """What is read of a report: the values of both pipelines, and how they compare on this dataset alone."""

    dataset: str
    values: dict[str, Values]
    comparisons: tuple[Comparison, ...]


def report(name: str, gain: float, changed: int) -> Report:
    """A variant that gains so much on so many queries."""
    gains = np.where(np.arange(QUERIES) < changed, gain, 0.0)
    values: dict[str, Values] = {
        side: dict.fromkeys(("nDCG@10", "MRR@5"), column) for side, column in (("a", np.zeros(QUERIES)), ("b", gains))
    }
    return Report(name, values, compare(values, [("a", "b")]))


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("given", "each", "verdict"),
    [
        ([("x", 0.5, 100), ("y", 0.0, 0)], ["better", "same"], "better"),
        ([("x", -0.5, 100), ("y", 0.5, 10)], ["worse", "undecided"], "worse"),
        ([("x", 0.5, 100), ("y", -0.5, 100)], ["better", "worse"], "undecided"),
        ([("x", 0.0, 0), ("y", 0.0, 0)], ["same", "same"], "same"),
        ([("x", 0.5, 15), ("y", 0.5, 15)], ["undecided", "undecided"], "undecided"),
    ],
)
def test_what_some_sets_show_and_none_contradicts_is_the_verdict(
    given: list[tuple[str, float, int]], each: list[str], verdict: str
) -> None:
    [found] = overall([report(*one) for one in given])  # type: ignore[misc]
    assert [one.verdict for one in found.sets] == each
    assert found.verdict == verdict
    assert all(f"{one.verdict} on {one.dataset}" in found.sentence for one in found.sets)


def test_what_one_set_shows_by_itself_may_be_chance_among_several() -> None:
    reports = [report(name, 0.5, 16) for name in "xy"]
    assert [one.verdict for found in reports for one in found.comparisons] == ["better"] * 4
    [found] = overall(reports)  # type: ignore[arg-type]
    assert found.verdict == "undecided"
