from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, P, nDCG

from speckit_memory.evaluation.running.further_report import ChannelShare, FurtherFigure, attribution
from speckit_memory.evaluation.statistics.further_metrics import FURTHER, AskedQuery, MemoryFacts, evaluate_further
from speckit_memory.memory.store.records import Tier

NOW = 2_000_000_000.0
HOUR = 3600.0


def one(metric: str, query: AskedQuery, known: dict[str, MemoryFacts] | None = None) -> float:
    return float(evaluate_further([query], known or {}, now=NOW)[metric][0])


@pytest.mark.requirement("E2.inversions")
def test_inversions_are_the_pairs_in_contrary_order() -> None:
    # of x 0, a 3, b 1, c 3: five pairs differ, and x-a, x-b, x-c, b-c stand in contrary order
    query = AskedQuery(["x", "a", "b", "c"], {"a": 3, "b": 1, "c": 3, "x": -1})
    assert one("inversion rate", query) == pytest.approx(4 / 5)
    assert np.isnan(one("inversion rate", AskedQuery(["x", "y"], {"a": 1}))), "nothing to put in order"


@pytest.mark.requirement("E2.constitutional")
def test_constitutional_memories_surface_among_the_first_five() -> None:
    known = {"law": MemoryFacts(Tier.CONSTITUTIONAL, folder="rules/house")}
    ranking = ["a", "b", "c", "d", "law"]
    assert one("constitutional@5", AskedQuery(ranking, {"a": 1}), known) == 1
    assert one("constitutional@5", AskedQuery(["e", *ranking], {"a": 1}), known) == 0
    assert one("constitutional@5", AskedQuery(ranking, {"a": 1}, folder="rules"), known) == 1
    assert np.isnan(one("constitutional@5", AskedQuery(["a"], {"a": 1}, folder="rule"), known)), "out of its reach"
    assert np.isnan(one("constitutional@5", AskedQuery(["a"], {"a": 1}))), "there is none"


@pytest.mark.requirement("E2.importance")
def test_recall_weighs_relevant_memories_by_their_tier() -> None:
    known = {
        "a": MemoryFacts(Tier.CONSTITUTIONAL),
        "b": MemoryFacts(Tier.CRITICAL),
        "c": MemoryFacts(Tier.IMPORTANT),
        "d": MemoryFacts(),
    }
    judged = dict.fromkeys("abcd", 1.0)
    for found, weight in (("a", 3), ("b", 2), ("c", 1.5), ("d", 1), ("ad", 4)):
        assert one("importance-weighted recall@20", AskedQuery(list(found), judged), known) == pytest.approx(
            weight / 7.5
        )
    fillers = [f"x{number}" for number in range(20)]
    assert one("importance-weighted recall@20", AskedQuery([*fillers, "a"], judged), known) == 0


@pytest.mark.requirement("E2.cold_start")
def test_new_memories_are_detected_among_the_first_ten() -> None:
    known = {
        "new": MemoryFacts(created_at=NOW - 47 * HOUR), "newer": MemoryFacts(created_at=NOW),
        "old": MemoryFacts(created_at=NOW - 49 * HOUR), "undated": MemoryFacts(),
    }  # fmt: skip
    judged = dict.fromkeys(known, 1.0)
    assert one("cold start@10", AskedQuery(["old", "new"], judged), known) == 1 / 2
    fillers = [f"x{number}" for number in range(9)]
    assert one("cold start@10", AskedQuery([*fillers, "new", "newer"], judged), known) == 1 / 2
    assert np.isnan(one("cold start@10", AskedQuery(["old"], {"old": 1, "undated": 1}), known)), "nothing is new"


@pytest.mark.requirement("E2.intent")
@pytest.mark.parametrize(
    ("intent", "grades"),
    [
        ("add_feature", (1, 2, 3)), ("understand", (1, 2, 3)), ("fix_bug", (0.5, 2, 4)), ("refactor", (1, 1.5, 2.5)),
        ("security_audit", (0, 2, 5)), ("find_spec", (1.5, 2, 3)), ("find_decision", (1.2, 2, 3.2)),
    ],
)  # fmt: skip
def test_gain_is_weighed_by_intent(intent: str, grades: tuple[float, float, float]) -> None:
    one_, two, three = grades
    query = AskedQuery(["a", "b", "c"], {"a": 1, "b": 2, "c": 3}, intent=intent)
    discounts = [1.0, 1 / np.log2(3), 1 / 2]
    expected = np.dot([one_, two, three], discounts) / np.dot([three, two, one_], discounts)
    assert one("intent-weighted nDCG@10", query) == pytest.approx(expected)


def test_without_an_intent_or_a_gain_there_is_no_weighted_gain() -> None:
    assert np.isnan(one("intent-weighted nDCG@10", AskedQuery(["a"], {"a": 1})))
    assert np.isnan(one("intent-weighted nDCG@10", AskedQuery(["a"], {"a": 1}, intent="security_audit")))


@pytest.mark.requirement("E2.proxy")
def test_the_proxy_weighs_gain_first_result_number_and_speed() -> None:
    judged = {"a": 2.0, "b": 1.0}
    query = AskedQuery(["b", "x"], judged, latency_ms=100.0)
    assert one("quality proxy", query) == pytest.approx(0.40 * 1 / 3 + 0.25 * 1 / 2 + 0.20 * 2 / 10 + 0.15 * 0.8)
    assert one("quality proxy", AskedQuery([], judged, latency_ms=900.0)) == 0
    full = AskedQuery(["a", "b", *(f"x{number}" for number in range(8))], judged)
    assert one("quality proxy", full) == pytest.approx(1)


@pytest.mark.requirement("E2.meaning")
def test_what_has_no_meaning_is_counted_out_of_the_mean() -> None:
    assert FurtherFigure.of(np.array([1.0, np.nan, 0.0, np.nan])) == FurtherFigure(0.5, 2)
    assert FurtherFigure.of(np.array([np.nan])) == FurtherFigure(None, 0)
    assert list(evaluate_further([], {}, now=NOW)) == list(FURTHER)


KEYS = [f"d{number}" for number in range(30)]
RUNS = st.lists(
    st.tuples(
        st.permutations(KEYS).flatmap(lambda keys: st.integers(0, 30).map(lambda n: keys[:n])),
        st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 3), min_size=1).filter(
            lambda judged: any(grade > 0 for grade in judged.values())
        ),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.requirement("E2.oracle")
@given(RUNS)
def test_precision_and_gain_equal_ir_measures(drawn: list[tuple[list[str], dict[str, int]]]) -> None:
    asked = [AskedQuery(ranking, judged, intent="understand") for ranking, judged in drawn]
    found = evaluate_further(asked, {}, now=NOW)
    qrels = {f"q{place}": judged for place, (_, judged) in enumerate(drawn)}
    run = {f"q{p}": {key: float(-rank) for rank, key in enumerate(keys)} for p, (keys, _) in enumerate(drawn)}
    measures = {"MAP@20": AP @ 20, "P@5": P @ 5, "intent-weighted nDCG@10": nDCG @ 10}
    for value in ir_measures.iter_calc(list(measures.values()), qrels, run):
        metric = next(name for name, measure in measures.items() if measure == value.measure)
        assert found[metric][int(value.query_id[1:])] == pytest.approx(value.value, abs=1e-9), metric


@pytest.mark.requirement("E2.channels")
def test_results_are_attributed_to_the_channels_that_found_them() -> None:
    found = attribution([[("vector",), ("bm25", "vector"), ()], [("bm25",), *[("vector",)] * 10]])
    assert (found.results, found.single, found.multiple, found.unattributed) == (13, 11, 1, 1)
    assert list(found.channels.items()) == [
        ("vector", ChannelShare(11 / 13, 10 / 13)),
        ("bm25", ChannelShare(2 / 13, 1 / 13)),
    ]
    assert str(found) == "vector 85% (alone 77%), bm25 15% (alone 8%)"
    assert attribution([]).channels == {}
