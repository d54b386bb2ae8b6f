from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from speckit_memory.evaluation.comparison import COMPARED_METRICS, compare


def columns(values: np.ndarray) -> dict[str, np.ndarray]:
    return dict.fromkeys(COMPARED_METRICS, values)


def test_a_clear_gain_is_better_one_way_and_worse_the_other() -> None:
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.5, 200)
    values = {"low": columns(low), "high": columns(low + rng.uniform(0, 0.2, 200))}
    forward = compare(values, [("low", "high")], seed=1)
    backward = compare(values, [("high", "low")], seed=1)
    assert [c.verdict for c in forward] == ["better", "better"]
    assert [c.verdict for c in backward] == ["worse", "worse"]
    assert [c.delta for c in forward] == [-c.delta for c in backward]
    assert all(c.queries_needed is None for c in (*forward, *backward))


def test_a_small_sample_is_undecided_and_says_how_many_queries_would_settle_it() -> None:
    values = {"a": columns(np.array([0.2, 0.4, 0.1])), "b": columns(np.array([0.3, 0.3, 0.4]))}
    (first, _) = compare(values, [("a", "b")], seed=1)
    # differences .1 -.1 .3: mean .1, deviation .2; all patterns but ±(.1 -.1 -.3)… sum .3 or .5 in 6 of 8
    assert asdict(first) == {
        "a": "a",
        "b": "b",
        "metric": "nDCG@10",
        "delta": pytest.approx(0.1),
        "ci95": (pytest.approx(-0.1), pytest.approx(0.3)),
        "p": 6 / 8,
        "p_adjusted": 1.0,
        "verdict": "undecided",
        "queries_needed": 39,  # (2.2414 + 0.8416)² × .04 / .01 = 38.02, at 0.05 / 2 comparisons
        "minimum_detectable_effect": pytest.approx(0.3560, abs=1e-4),
    }


def test_equal_pipelines_are_the_same_only_when_enough_queries_say_so() -> None:
    many, few = np.full(50, 0.5), np.full(49, 0.5)
    assert [c.verdict for c in compare({"a": columns(many), "b": columns(many)}, [("a", "b")], seed=1)] == ["same"] * 2
    undecided = compare({"a": columns(few), "b": columns(few)}, [("a", "b")], seed=1)
    assert [(c.verdict, c.queries_needed) for c in undecided] == [("undecided", None)] * 2


def test_the_correction_covers_all_comparisons_of_the_report() -> None:
    rng = np.random.default_rng(7)
    base = rng.uniform(0, 1, 60)
    values = {name: columns(base + rng.normal(shift, 0.1, 60)) for name, shift in (("a", 0), ("b", 0.04), ("c", 0))}
    alone = compare(values, [("a", "b")], seed=1)
    together = compare(values, [("a", "b"), ("a", "c"), ("b", "c")], seed=1)
    assert together[0].p == alone[0].p
    assert together[0].p_adjusted > alone[0].p_adjusted
    assert [(c.a, c.b, c.metric) for c in together] == [
        (a, b, metric) for a, b in (("a", "b"), ("a", "c"), ("b", "c")) for metric in COMPARED_METRICS
    ]
