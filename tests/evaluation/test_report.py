from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rendered import said

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.running.report import (
    DegradedPart,
    EvalReport,
    IntentAccuracy,
    Latency,
    PipelineFigures,
    figures,
)
from speckit_memory.evaluation.statistics.comparison import Comparison
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.report import as_document


def answer(
    latency_ms: float, complexity: str, intent: str = "understand", degraded: dict[str, str] | None = None
) -> Answer:
    return Answer((("a", 1.0),), latency_ms, complexity, intent, degraded or {})


def pipeline(name: str, ndcg: float, p50: float) -> PipelineFigures:
    metrics = {"nDCG@10": ndcg, "MRR@5": 0.5, "Recall@20": 0.8123456789, "Hit@1": 0.4}
    latency = Latency(p50, 7.9, 3)
    return PipelineFigures(name, "f00d", 21.0, metrics, latency, {"simple": Latency(2.0, 3.9, 3)}, 0)


COMPARISON = Comparison("bm25", "default", "nDCG@10", 0.03, (0.01, 0.05), 0.004, 0.012, "better", None, 0.02)
UNDECIDED = Comparison("bm25", "default", "MRR@5", 0.003, (-0.01, 0.02), 0.4, 0.4, "undecided", 1200, 0.0251)
REPORT = EvalReport(
    dataset="scifact",
    documents=5183,
    queries=300,
    no_relevant=9,
    pipelines=(pipeline("bm25", 0.67, 2.1), pipeline("default", 0.7, 4.1)),
    comparisons=(COMPARISON, UNDECIDED),
    embedder="static-256",
    warnings=("1 of 5,183 documents could not be indexed",),
)


@pytest.mark.requirement("E2")
def test_figures_sum_up_the_answers_of_a_pipeline() -> None:
    answers = [
        answer(1.0, "simple"),
        answer(3.0, "simple", "find_decision", {"vector": "no model", "graph": "no edges"}),
        answer(10.0, "complex", degraded={"vector": "too late"}),
    ]
    queries = [
        DatasetQuery("1", "x", intent="understand"),
        DatasetQuery("2", "x", intent="fix_bug"),
        DatasetQuery("3", "x"),
    ]
    values = {metric: np.array([0.0, 0.5, 1.0]) for metric in METRICS}
    assert figures("p", "f00d", 1.23456, values, answers, queries) == PipelineFigures(
        name="p",
        hash="f00d",
        index_s=1.235,
        metrics=dict.fromkeys(METRICS, 0.5),
        latency=Latency(3.0, 9.3, 3),  # between 3 and 10 at 0.9 of the way
        by_complexity={"simple": Latency(2.0, 2.9, 2), "complex": Latency(10.0, 10.0, 1)},
        degraded_queries=2,
        degraded_parts=(DegradedPart("graph", 1, "no edges"), DegradedPart("vector", 2, "no model")),
        intent=IntentAccuracy(0.5, 2),
    )


def test_the_json_has_the_shape_of_the_outer_contract() -> None:
    document = json.loads(json.dumps(as_document(REPORT)))
    assert document | {"pipelines": document["pipelines"][:1], "comparisons": document["comparisons"][:1]} == {
        "dataset": "scifact",
        "documents": 5183,
        "queries": 300,
        "excluded": {"no_relevant": 9},
        "embedder": "static-256",
        "pipelines": [
            {
                "name": "bm25",
                "hash": "f00d",
                "index_s": 21.0,
                "metrics": {"nDCG@10": 0.67, "MRR@5": 0.5, "Recall@20": 0.812346, "Hit@1": 0.4},
                "latency_ms": {
                    "p50": 2.1,
                    "p95": 7.9,
                    "n": 3,
                    "by_complexity": {"simple": {"p50": 2.0, "p95": 3.9, "n": 3}},
                },
                "degraded_queries": 0,
                "degraded_parts": [],
            }
        ],
        "comparisons": [
            {
                "a": "bm25",
                "b": "default",
                "metric": "nDCG@10",
                "delta": 0.03,
                "ci95": [0.01, 0.05],
                "p": 0.004,
                "p_adjusted": 0.012,
                "verdict": "better",
                "queries_needed": None,
                "minimum_detectable_effect": 0.02,
            }
        ],
        "warnings": ["1 of 5,183 documents could not be indexed"],
    }


def test_the_text_marks_the_best_values_and_says_the_verdicts_in_words() -> None:
    assert said(REPORT) == (
        "scifact: 5,183 documents, 300 queries (9 more have no relevant document and are left out)\n"
        "indexed in 21.0 s with static-256\n"
        "\n"
        "default is better than bm25 on nDCG@10: +0.0300 "
        "(95 % interval +0.0100 to +0.0500, p 0.0040, adjusted 0.0120)\n"
        "default against bm25 is undecided on MRR@5: +0.0030 "
        "(95 % interval -0.0100 to +0.0200, p 0.4000, adjusted 0.4000); "
        "about 1,200 queries in all would show a difference of this size, or none above 0.005; 300 queries show "
        "differences from 0.025 up\n"
        "\n"
        "* the best in its column\n"
        "pipeline  nDCG@10    MRR@5   Recall@20    Hit@1   p50 ms   p95 ms   degraded  intent\n"
        "bm25       0.6700   0.5000*     0.8123*  0.4000*     2.1*     7.9*         0       -\n"
        "default    0.7000*  0.5000*     0.8123*  0.4000*     4.1      7.9*         0       -\n"
        "\n"
        "warning: 1 of 5,183 documents could not be indexed\n"
        "-v shows more"
    )


def test_parts_that_did_not_work_are_named_beside_the_figures() -> None:
    lesser = replace(REPORT.pipelines[0], degraded_queries=2, degraded_parts=(DegradedPart("vector", 2, "no model"),))
    report = replace(REPORT, pipelines=(lesser,), comparisons=(), warnings=())
    assert said(report).splitlines()[-2] == "warning: bm25 ran 2 of 300 queries without vector (no model)"
    assert as_document(report)["pipelines"][0]["degraded_parts"] == [
        {"part": "vector", "queries": 2, "reason": "no model"}
    ]
