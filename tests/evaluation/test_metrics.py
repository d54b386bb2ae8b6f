from __future__ import annotations

from math import log2

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, R, Success, nDCG

from speckit_memory.evaluation.statistics.metrics import METRICS, evaluate, relevant

ORACLE = {"nDCG@10": nDCG @ 10, "MRR@5": RR @ 5, "Recall@20": R @ 20, "Hit@1": Success @ 1}


def assert_values(values: dict[str, np.ndarray], expected: dict[str, list[float]]) -> None:
    assert list(values) == list(METRICS) == list(expected)
    for metric, column in expected.items():
        assert values[metric].tolist() == pytest.approx(column), metric


@pytest.mark.requirement("E2.metrics")
def test_metrics_equal_values_worked_by_hand() -> None:
    # gains by rank: x 0, a 3, b 1, then nothing; ideal order 3, 2, 1
    found = 3 / log2(3) + 1 / log2(4)
    ideal = 3 / log2(2) + 2 / log2(3) + 1 / log2(4)
    values = evaluate([["x", "a", "b"]], [{"a": 3, "b": 1, "c": 2, "x": 0}])
    assert_values(
        values,
        {"nDCG@10": [found / ideal], "MRR@5": [1 / 2], "Recall@20": [2 / 3], "Hit@1": [0.0]},
    )


@pytest.mark.requirement("E2.metrics")
def test_each_metric_reads_no_further_than_its_depth() -> None:
    fillers = [f"x{i}" for i in range(30)]
    rankings = [[*fillers[:place], "a", *fillers[place:]] for place in (0, 4, 5, 9, 10, 19, 20)]
    values = evaluate(rankings, [{"a": 1}] * len(rankings))
    assert_values(
        values,
        {
            "nDCG@10": [1, 1 / log2(6), 1 / log2(7), 1 / log2(11), 0, 0, 0],
            "MRR@5": [1, 1 / 5, 0, 0, 0, 0, 0],
            "Recall@20": [1, 1, 1, 1, 1, 1, 0],
            "Hit@1": [1, 0, 0, 0, 0, 0, 0],
        },
    )


def test_a_negative_judgement_gains_nothing() -> None:
    values = evaluate([["bad", "a"]], [{"bad": -2, "a": 1}])
    assert_values(values, {"nDCG@10": [1 / log2(3)], "MRR@5": [0.5], "Recall@20": [1.0], "Hit@1": [0.0]})


def test_an_empty_ranking_scores_nothing() -> None:
    assert_values(evaluate([[]], [{"a": 1}]), {metric: [0.0] for metric in METRICS})


def test_no_queries_have_no_values() -> None:
    assert_values(evaluate([], []), {metric: [] for metric in METRICS})


@pytest.mark.requirement("E2")
def test_a_query_without_relevant_documents_is_refused_instead_of_scored() -> None:
    assert relevant({"a": 0, "b": -1}) == 0
    with pytest.raises(ValueError, match="1 queries have no relevant document"):
        evaluate([["a"], ["b"]], [{"a": 1}, {"b": 0}])


KEYS = [f"d{i}" for i in range(40)]


@pytest.mark.requirement("E2")
@given(
    st.lists(
        st.tuples(
            st.permutations(KEYS).flatmap(lambda keys: st.integers(0, 30).map(lambda n: keys[:n])),
            st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 3), min_size=1).filter(
                lambda judged: any(grade > 0 for grade in judged.values())
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_metrics_equal_those_of_trec_eval(queries: list[tuple[list[str], dict[str, int]]]) -> None:
    run = {
        str(q): {key: float(len(ranking) - rank) for rank, key in enumerate(ranking)} | {"": -1.0}
        for q, (ranking, _) in enumerate(queries)
    }
    qrels = {str(q): judged for q, (_, judged) in enumerate(queries)}
    values = evaluate([ranking for ranking, _ in queries], [judged for _, judged in queries])
    for found in ir_measures.iter_calc(list(ORACLE.values()), qrels, run):
        metric = next(name for name, measure in ORACLE.items() if measure == found.measure)
        assert values[metric][int(found.query_id)] == pytest.approx(found.value, abs=1e-12), metric
