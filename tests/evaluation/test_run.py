from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
from answered import refused
from ir_measures import RR, R, Success, nDCG
from rendered import said
from tiny_encoder import UNKNOWN, write_encoder

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import read
from speckit_memory.evaluation.measuring.measure import EvaluationProgress
from speckit_memory.evaluation.running.further_report import FurtherFigures
from speckit_memory.evaluation.running.report import EvalReport, Latency
from speckit_memory.evaluation.running.run import run
from speckit_memory.evaluation.statistics.metrics import DEPTH
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.models.embedders import StaticEmbedder

Write = Callable[..., Path]

NOW = 1_790_000_000.0
ENVIRON: dict[str, str] = {}


NO_TIME = Latency(p50=0.0, p95=0.0, n=0)


def values(report: EvalReport) -> object:
    """Everything in a report that does not tell the time."""
    timeless = tuple(
        replace(p, index_s=0.0, latency=NO_TIME, by_complexity={}, further=without_speed(p.further))
        for p in report.pipelines
    )
    return replace(report, pipelines=timeless)


def without_speed(further: FurtherFigures | None) -> FurtherFigures | None:
    """The further figures without the one that speed is part of."""
    assert further is not None
    return replace(further, metrics={name: one for name, one in further.metrics.items() if name != "quality proxy"})


@pytest.mark.requirement("E2")
def test_an_evaluation_scores_the_judged_queries_and_counts_the_rest(write_dataset: Write) -> None:
    report = run(write_dataset(), ["bm25"], environ=ENVIRON, now=NOW)
    document = as_document(report)
    (pipeline,) = document.pop("pipelines")
    assert document == {
        "dataset": "tiny",
        "documents": 4,
        "queries": 3,
        "excluded": {"no_relevant": 1},
        "embedder": StaticEmbedder().model_id,
        "comparisons": [],
        "warnings": [],
    }
    assert pipeline["metrics"] == {"nDCG@10": 1.0, "MRR@5": 1.0, "Recall@20": 1.0, "Hit@1": 1.0}
    assert (pipeline["name"], pipeline["degraded_queries"]) == ("bm25", 0)
    assert sum(level["n"] for level in pipeline["latency_ms"]["by_complexity"].values()) == 3


@pytest.mark.requirement("E2", "C6")
def test_rules_that_come_first_whatever_is_asked_cost_a_ranking_nothing(write_dataset: Write) -> None:
    report = run(write_dataset(qrels=[("q1", "fusion", 2), ("q2", "decay", 1)]), now=NOW)
    (pipeline,) = as_document(report)["pipelines"]
    assert pipeline["metrics"] == {"nDCG@10": 1.0, "MRR@5": 1.0, "Recall@20": 1.0, "Hit@1": 1.0}
    assert pipeline["further_metrics"]["constitutional@5"]["mean"] == 1.0
    judged = run(write_dataset(name="judged", qrels=[("q1", "fusion", 1), ("q1", "rules", 1)]), now=NOW)
    assert as_document(judged)["pipelines"][0]["metrics"]["nDCG@10"] == 1.0
    useless = run(write_dataset(name="useless", qrels=[("q1", "fusion", 1), ("q1", "rules", 0)]), now=NOW)
    assert as_document(useless)["pipelines"][0]["metrics"]["MRR@5"] == 1.0, (
        "who judges a rule useless takes no rank away"
    )


@pytest.mark.requirement("E2", "C6")
def test_rankings_are_read_equally_deep_below_rules(write_dataset: Write) -> None:
    notes = [{"_id": f"n{n}", "title": f"Note {n}", "text": f"Zeppelins land at mast {n}."} for n in range(DEPTH)]
    rules = [
        {"_id": f"r{n}", "title": f"Rule {n}", "text": "Never push.", "metadata": {"tier": "constitutional"}}
        for n in range(3)
    ]
    qrels = [("q", note["_id"], 1) for note in notes]
    queries = [{"_id": "q", "text": "zeppelins"}]
    folder = write_dataset(name="deep", corpus=[*notes, *rules], queries=queries, qrels=qrels)
    (pipeline,) = as_document(run(folder, now=NOW))["pipelines"]
    assert pipeline["metrics"]["Recall@20"] == 1.0


@pytest.mark.requirement("I6")
def test_the_whole_run_is_embedded_by_the_encoder_that_the_environment_names(
    write_dataset: Write, tmp_path: Path
) -> None:
    encoder = write_encoder(tmp_path / "tiny", {UNKNOWN: (0.0, 1.0), "fusion": (1.0, 0.0)})
    report = run(write_dataset(), ["default", "quality"], environ={EMBEDDER_VARIABLE: str(encoder)}, now=NOW)
    assert report.embedder.startswith("onnx-tiny-")
    assert f"indexed in {report.pipelines[0].index_s:.1f} s with {report.embedder}" in said(report)
    assert [(pipeline.name, pipeline.degraded_queries) for pipeline in report.pipelines] == [
        ("default", 0),
        ("quality", 0),
    ]


def test_queries_go_through_the_entry_of_production(write_dataset: Write, tmp_path: Path) -> None:
    folder, out = write_dataset(), tmp_path / "out.run"
    run(folder, ["default"], run_file=out, environ=ENVIRON, now=NOW)
    expected = []
    dataset = read(folder)
    with Memory.open(tmp_path / "own.db", "default", root=tmp_path, environ=ENVIRON) as memory:
        memory.index_documents(
            Source(d.key, d.text, d.title, d.folder, d.tier, d.triggers, d.created_at) for d in dataset.corpus()
        )
        for query in dataset.judged():
            result = memory.search(query.text, limit=DEPTH, folder=query.folder, now=NOW)
            expected += [(query.id, row.key, str(rank)) for rank, row in enumerate(result.results, start=1)]
    lines = [line.split() for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(query, key, rank) for query, _, key, rank, _, _ in lines] == expected
    assert {(line[1], line[5]) for line in lines} == {("Q0", "default")}


def test_a_query_with_a_folder_searches_that_folder_alone(write_dataset: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.run"
    run(write_dataset(), ["vector"], run_file=out, environ=ENVIRON, now=NOW)
    lines = [line.split() for line in out.read_text(encoding="utf-8").splitlines()]
    assert [line[2] for line in lines if line[0] == "q3"] == ["rules"]
    assert len([line for line in lines if line[0] == "q2"]) > 1


def test_the_figures_can_be_recomputed_from_the_run_file(write_dataset: Write, tmp_path: Path) -> None:
    folder, out = write_dataset(), tmp_path / "out.run"
    report = run(folder, ["bm25", "vector"], run_file=out, environ=ENVIRON, now=NOW)
    qrels = {
        query: {key: int(grade) for key, grade in judged.items()}
        for query, judged in read(folder).judgements.items()
        if query != "q4"
    }
    oracle = {"nDCG@10": nDCG @ 10, "MRR@5": RR @ 5, "Recall@20": R @ 20, "Hit@1": Success @ 1}
    for pipeline in report.pipelines:
        lines = [line for line in out.read_text(encoding="utf-8").splitlines() if line.endswith(f" {pipeline.name}")]
        (tmp_path / "one.run").write_text("\n".join(lines), encoding="utf-8")
        found = ir_measures.calc_aggregate(
            list(oracle.values()),
            qrels,
            ir_measures.read_trec_run(str(tmp_path / "one.run")),  # type: ignore[no-untyped-call]
        )
        assert dict(pipeline.metrics) == pytest.approx({metric: found[oracle[metric]] for metric in oracle})


def test_a_run_can_be_repeated_to_the_digit(write_dataset: Write, tmp_path: Path) -> None:
    folder = write_dataset()
    reports = [
        run(folder, ["default", "bm25"], run_file=tmp_path / name, environ=ENVIRON, now=NOW) for name in ("a", "b")
    ]
    assert values(reports[0]) == values(reports[1])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_pipeline_compared_with_itself_shows_no_difference(write_dataset: Write) -> None:
    report = run(write_dataset(), ["bm25", "bm25"], environ=ENVIRON, now=NOW)
    assert [pipeline.name for pipeline in report.pipelines] == ["bm25", "bm25#2"]
    assert report.pipelines[0].metrics == report.pipelines[1].metrics
    assert [(c.a, c.b, c.delta, c.p, c.verdict) for c in report.comparisons] == [
        ("bm25", "bm25#2", 0.0, 1.0, "undecided")
    ] * 2


def test_all_pairs_are_compared_in_the_given_order(write_dataset: Write) -> None:
    report = run(write_dataset(), ["vector", "bm25", "default"], environ=ENVIRON, now=NOW)
    assert [(c.a, c.b, c.metric) for c in report.comparisons] == [
        (a, b, metric)
        for a, b in (("vector", "bm25"), ("vector", "default"), ("bm25", "default"))
        for metric in ("nDCG@10", "MRR@5")
    ]


def test_a_sample_of_the_queries_is_always_the_same_one(write_dataset: Write, tmp_path: Path) -> None:
    folder = write_dataset()
    reports = [
        run(folder, ["bm25"], queries=2, run_file=tmp_path / name, environ=ENVIRON, now=NOW) for name in ("a", "b")
    ]
    assert [(report.queries, report.no_relevant) for report in reports] == [(2, 1)] * 2
    assert (tmp_path / "a").read_text(encoding="utf-8") == (tmp_path / "b").read_text(encoding="utf-8")
    assert run(folder, ["bm25"], queries=99, environ=ENVIRON, now=NOW).queries == 3


def test_no_queries_at_all_is_out_of_range(write_dataset: Write) -> None:
    with refused("E032", match="the number of queries is 0; accepted: 1 and above"):
        run(write_dataset(), ["bm25"], queries=0, environ=ENVIRON)


def test_a_dataset_without_relevant_documents_measures_nothing(write_dataset: Write) -> None:
    with refused("E123", match="has a relevant document"):
        run(write_dataset(qrels=[("q1", "fusion", 0)]), ["bm25"], environ=ENVIRON)


def test_the_problems_of_all_pipelines_are_reported_before_any_work(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text("pipeline: broken\nfusion:\n  - {use: no_such_step}\n")
    with pytest.raises(SpeckitError) as caught:
        run(tmp_path, [str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml")], environ=ENVIRON)
    places = [(Path(problem.where.file).name, problem.code) for problem in caught.value.problems if problem.where]
    assert [place for place in places if place[1] == "E116"] == [("one.yaml", "E116"), ("two.yaml", "E116")]


def test_edges_that_the_store_refuses_are_left_out_with_a_warning(write_dataset: Write) -> None:
    hub = [{"_id": f"d{n}", "title": f"Note {n}", "text": f"Note number {n} about fusion."} for n in range(25)]
    folder = write_dataset(
        corpus=hub,
        queries=[{"_id": "q", "text": "fusion"}],
        qrels=[("q", "d0", 1)],
        edges=[("d0", "supports", f"d{n}", 1.0) for n in range(1, 25)],
    )
    (warning,) = run(folder, ["bm25"], environ=ENVIRON, now=NOW).warnings
    assert warning.startswith("4 of 24 edges were left out; the first: E032 ")


def test_progress_covers_indexing_and_every_search(write_dataset: Write) -> None:
    seen: list[EvaluationProgress] = []
    run(write_dataset(), ["bm25", "vector"], progress=seen.append, environ=ENVIRON, now=NOW)
    assert [p for p in seen if p.phase == "index"][-1] == EvaluationProgress("index", 4, 4)
    assert [p for p in seen if p.phase == "search"] == [EvaluationProgress("search", done, 6) for done in range(1, 7)]


def test_nothing_is_left_behind(write_dataset: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    run(write_dataset(), ["bm25"], environ=ENVIRON, now=NOW)
    assert list((tmp_path / "temporary").iterdir()) == []
