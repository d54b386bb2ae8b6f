from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.evaluation.statistics.comparison import (
    COMPARED_METRICS,
    compare,
    largest_weight,
    macro_averaged,
    verdict_of,
)
from speckit_memory.evaluation.statistics.sequential import anytime_interval, anytime_p


def columns(values: np.ndarray) -> dict[str, np.ndarray]:
    return dict.fromkeys(COMPARED_METRICS, values)


def test_a_clear_gain_is_better_one_way_and_worse_the_other() -> None:
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.5, 200)
    values = {"low": columns(low), "high": columns(low + rng.uniform(0, 0.2, 200))}
    forward = compare(values, [("low", "high")])
    backward = compare(values, [("high", "low")])
    assert [c.verdict for c in forward] == ["better", "better"]
    assert [c.verdict for c in backward] == ["worse", "worse"]
    assert [c.delta for c in forward] == [-c.delta for c in backward]
    assert all(c.queries_needed is None for c in (*forward, *backward))


def test_a_small_sample_is_undecided_and_says_how_many_queries_would_settle_it() -> None:
    values = {"a": columns(np.array([0.2, 0.4, 0.1])), "b": columns(np.array([0.3, 0.3, 0.4]))}
    (first, _) = compare(values, [("a", "b")])
    assert first.delta == pytest.approx(0.1)
    assert (first.verdict, first.p_adjusted) == ("undecided", 1.0)
    assert first.p == pytest.approx(anytime_p(np.array([0.1, -0.1, 0.3])))
    assert first.ci95 == anytime_interval(np.array([0.1, -0.1, 0.3]), level=1 - 0.05 / 2)
    assert first.queries_needed is not None
    more = repeated(values, first.queries_needed)
    assert compare(more, [("a", "b")])[0].verdict == "better"


def repeated(values: dict[str, dict[str, np.ndarray]], queries: int) -> dict[str, dict[str, np.ndarray]]:
    """So many queries like these."""
    return {name: columns(np.resize(of["nDCG@10"], queries)) for name, of in values.items()}


def test_equal_pipelines_are_the_same_only_when_enough_queries_say_so() -> None:
    few = {"a": columns(np.full(300, 0.5)), "b": columns(np.full(300, 0.5))}
    undecided = compare(few, [("a", "b")])[0]
    assert undecided.verdict == "undecided", "one query in a hundred may lose everything, and not be among these"
    assert undecided.queries_needed is not None
    for queries, verdict in ((undecided.queries_needed, "same"), (undecided.queries_needed - 10, "undecided")):
        assert compare(repeated(few, queries), [("a", "b")])[0].verdict == verdict


@pytest.mark.requirement("E2")
def test_the_interval_leaves_out_zero_exactly_when_there_is_a_verdict() -> None:
    rng = np.random.default_rng(3)
    for shift in np.linspace(-0.1, 0.1, 21):
        column = np.clip(rng.normal(shift, 0.2, 120), -1, 1)
        values = {name: columns(np.zeros(120)) for name in "acd"} | {"b": columns(column)}
        one = compare(values, [("a", "b"), ("a", "c"), ("a", "d")])[0]
        assert (one.verdict in ("better", "worse")) == (one.p_adjusted < 0.05) == (one.ci95[0] > 0 or one.ci95[1] < 0)


def test_datasets_that_count_the_same_are_judged_within_what_their_weights_allow() -> None:
    small, large = (
        {"nDCG@10": np.full(size, gain), "MRR@5": np.full(size, gain)} for size, gain in ((50, 0.6), (450, 0.1))
    )
    none = [{metric: np.zeros(len(of[metric])) for metric in of} for of in (small, large)]
    values = {"a": macro_averaged(none), "b": macro_averaged([small, large])}
    largest = largest_weight(none)
    assert largest == 5.0
    one = compare(values, [("a", "b")], largest=largest)[0]
    assert one.delta == pytest.approx(0.35)
    assert one.verdict == "better"
    assert one.ci95[0] < 0.35 < one.ci95[1]


def test_the_correction_covers_all_comparisons_of_the_report() -> None:
    rng = np.random.default_rng(7)
    base = rng.uniform(0, 1, 60)
    values = {name: columns(base + rng.normal(shift, 0.1, 60)) for name, shift in (("a", 0), ("b", 0.1), ("c", 0))}
    alone = compare(values, [("a", "b")])
    together = compare(values, [("a", "b"), ("a", "c"), ("b", "c")])
    assert together[0].p == alone[0].p
    assert together[0].p_adjusted == pytest.approx(3 * alone[0].p_adjusted)
    assert together[0].ci95[0] < alone[0].ci95[0] < alone[0].ci95[1] < together[0].ci95[1]
    assert [(c.a, c.b, c.metric) for c in together] == [
        (a, b, metric) for a, b in (("a", "b"), ("a", "c"), ("b", "c")) for metric in COMPARED_METRICS
    ]


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
