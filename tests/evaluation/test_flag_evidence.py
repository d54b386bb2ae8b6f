"""What kept evaluations and live experiments say to a criterion: corrected tests, and times by their intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from side_by_side import CONTROL, EXPERIMENT, VARIANT, observed, recorded

from speckit_memory.config.flags.criterion import Condition
from speckit_memory.config.flags.flags import read_flags
from speckit_memory.evaluation.experiments.criteria import Figures, unmet
from speckit_memory.evaluation.experiments.flag_evidence import StoredFigures, find_comparison
from speckit_memory.evaluation.statistics import sequential
from speckit_memory.memory.store.evaluation.records import StoredEvaluation

pytestmark = pytest.mark.requirement("P11.evidence")

QUERIES = 200


def stored(
    variants: Sequence[Mapping[str, Sequence[float]]], ms: Mapping[str, Sequence[float]] | None = None
) -> StoredFigures:
    """A kept evaluation in which the variants gain so much on each query, seen from the first of them."""
    values = {"control": {metric: [0.5] * len(column) for metric, column in variants[0].items()}}
    for number, gains in enumerate(variants, 1):
        values[f"v{number}"] = {metric: (0.5 + np.array(column)).tolist() for metric, column in gains.items()}
    document = {
        "pipelines": [{"name": name, "hash": name} for name in values],
        "comparisons": [],
        "per_query": {"queries": [str(number) for number in range(QUERIES)], "values": values, "ms": ms or {}},
    }
    return StoredFigures(StoredEvaluation("a", "compare", 1.0, "own", "digest", document), 1)


def gains(few: int) -> list[float]:
    return [0.2] * few + [0.0] * (QUERIES - few)


def test_a_metric_that_the_report_does_not_test_is_tested_after_correction() -> None:
    better = Condition("Recall@20", "better", 0.0, QUERIES)
    (told,) = unmet([better], stored([{"Recall@20": gains(20)}]))
    assert "p after correction is 0.618, below 0.05 is needed" in told
    assert unmet([better], stored([{"Recall@20": gains(40)}])) == []
    # four variants are four chances
    four = [{"Recall@20": gains(40)}, *({"Recall@20": gains(2)} for _ in range(3))]
    (told,) = unmet([better], stored(four))
    assert "p after correction is 0.104" in told


@pytest.mark.usefixtures("simulated")
def test_what_loses_seldom_passes_for_not_worse_as_seldom_as_the_level_says() -> None:
    """One query of a hundred loses everything: 13 of 100 samples of 200 show none of these."""
    rng = np.random.default_rng(1)
    not_worse = Condition("nDCG@10", "not_worse", 0.005, QUERIES)
    lost = (rng.random((1000, QUERIES)) < 0.01).astype(np.float64) / 2  # half of what the metric has
    assert (lost.sum(axis=1) == 0).mean() > 0.1
    passed = [not unmet([not_worse], stored([{"nDCG@10": (-column).tolist()}])) for column in np.unique(lost, axis=0)]
    assert np.mean(passed) <= 0.025


@pytest.mark.usefixtures("simulated")
def test_measuring_again_on_a_store_that_grows_does_not_make_a_variant_better() -> None:
    rng = np.random.default_rng(2)
    better = Condition("nDCG@10", "better", 0.0, 20)
    false = 0
    for _ in range(100):
        gained = np.where(rng.random(QUERIES) < 0.3, rng.choice((-0.4, 0.4), QUERIES), 0.0)
        looks = (gained[: QUERIES * look // 10] for look in range(1, 11))
        false += any(not unmet([better], stored([{"nDCG@10": column.tolist()}])) for column in looks)
    assert false / 100 <= 0.05


def test_times_of_a_kept_evaluation_are_held_to_the_criterion_by_their_interval() -> None:
    rng = np.random.default_rng(1)
    fast, slow = rng.uniform(10, 20, QUERIES).tolist(), rng.uniform(30, 60, QUERIES).tolist()
    found = stored([{"nDCG@10": gains(0)}], {"control": slow, "v1": fast})
    assert unmet([Condition("p95_ms", "better", 0.0, QUERIES)], found) == []
    assert unmet([Condition("p95_ms", "at_most", 20.0, QUERIES)], found) == []
    value = float(np.percentile(fast, 95))
    (told,) = unmet([Condition("p95_ms", "at_most", value + 0.01, QUERIES)], found)
    assert "p95_ms interval reaches" in told
    assert unmet([Condition("p95_ms", "at_most", 99.0)], stored([{"nDCG@10": gains(0)}])) == [
        "p95_ms at most 99 over 200 queries: it has no figure for p95_ms"
    ]


@pytest.mark.parametrize(("queries", "reaches"), [(60, "inf"), (200, None)])
def test_times_of_a_live_experiment_hold_at_every_look(tmp_path: Path, queries: int, reaches: str | None) -> None:
    seen = [observed(number, [1, 2], [1, 2]) for number in range(queries)]  # 13 ms and a little more each time
    with recorded(tmp_path / "memory.db", seen) as database:
        found = find_comparison(database, EXPERIMENT)
    assert found is not None
    assert (found.control, list(found.variants)) == (CONTROL.hash, [VARIANT.hash])
    told = unmet([Condition("p95_ms", "at_most", 15.5, queries)], found.variants[VARIANT.hash])
    assert told == ([] if reaches is None else [
        f"p95_ms at most 15.5 over {queries} queries: p95_ms interval reaches {reaches}, at most 15.5 is accepted"
    ])  # fmt: skip


SHIPPED = [
    pytest.param(condition, id=f"{flag.name} {condition}")
    for flag in read_flags({})[0].values()
    for condition in flag.criterion
    if condition.direction != "better"
]


@pytest.mark.parametrize("condition", SHIPPED)
def test_a_variant_that_changes_nothing_meets_shipped_criteria_with_the_queries_they_name(
    alike: Mapping[int, Figures], condition: Condition
) -> None:
    assert condition.queries in alike
    assert unmet([condition], alike[condition.queries]) == []


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Figures]:
    """A live experiment on so many queries in which both answer alike."""
    found = {}
    for queries in (200, 300):
        seen = [observed(number, [1, 2], [1, 2]) for number in range(queries)]
        with recorded(tmp_path_factory.mktemp("alike") / "memory.db", seen) as database:
            shown = find_comparison(database, EXPERIMENT)
        assert shown is not None
        found[queries] = shown.variants[VARIANT.hash]
    return found


def test_what_is_missing_says_about_how_many_more_queries_would_do(alike: Mapping[int, Figures]) -> None:
    (told,) = unmet([Condition("nDCG@10", "not_worse", 0.005, 200)], alike[200])
    further = int(re.findall(r"about ([\d,]+) more queries like these would be enough", told)[0].replace(",", ""))
    low, _ = sequential.anytime_interval(np.zeros(200 + further))
    assert low == pytest.approx(-0.005, rel=0.02)
    (told,) = unmet([Condition("nDCG@10", "better", 0.0, 200)], alike[200])
    assert "more queries like these would not be enough" in told


@pytest.mark.parametrize(
    ("metric", "before", "after"),
    [("Recall@20", [1, 2], [1, 3]), ("Hit@1", [2, 3], [3, 2]), ("Recall@20", [1, 3], [1, 2])],
)
def test_a_live_experiment_is_tested_on_the_metric_that_the_criterion_names(
    tmp_path: Path, metric: str, before: list[int], after: list[int]
) -> None:
    """What only one of the answers has, or what stands first, is judged: 3 is relevant, 2 is not."""
    seen = [observed(number, before, after if number % 2 else before) for number in range(200)]
    with recorded(tmp_path / "memory.db", seen, judged={2: 0, 3: 2}) as database:
        found = find_comparison(database, EXPERIMENT)
    assert found is not None
    shown = found.variants[VARIANT.hash].difference(metric)
    assert shown is not None
    assert shown.queries == 200
    sign = 1 if before != [1, 3] else -1
    assert (shown.value * sign, shown.p is not None and shown.p < 0.001) == (0.5, True)
    better = unmet([Condition(metric, "better", 0.0, 200)], found.variants[VARIANT.hash])
    assert (better == []) == (sign == 1)
