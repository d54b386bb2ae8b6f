from __future__ import annotations

from pathlib import Path
from typing import Any

import judged_sets
import pytest
from answered import refused
from rendered import said

from speckit_memory.evaluation.comparing.compare import compare_pipelines, compare_runs
from speckit_memory.evaluation.datasets.trec import read_runs
from speckit_memory.evaluation.ground_truth.ground import DatasetSource
from speckit_memory.evaluation.measuring.measure import EvaluationProgress
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.report import as_document

ENVIRON: dict[str, str] = {}
NOW = 1_790_000_000.0


def channels(*names: str) -> dict[str, Any]:
    """A pipeline of these channels alone."""
    return {
        "pipeline": "+".join(names),
        "extends": "none",
        "candidates": {"channels": [{"use": name} for name in names]},
        "fusion": [{"use": "z_score", "weights": dict.fromkeys(names, 1.0)}],
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_sets.titles(tmp_path_factory.mktemp("sets") / "mixed", by_title=10, by_text=10, by_mention=10)


def test_the_first_pipeline_is_the_control_and_runs_twice(mixed: Path) -> None:
    seen: list[EvaluationProgress] = []
    report = compare_pipelines(
        DatasetSource(mixed), ["bm25", "vector", "fts5"], environ=ENVIRON, now=NOW, progress=seen.append
    )
    assert [pipeline["name"] for pipeline in report.pipelines] == ["bm25", "vector", "fts5"]
    assert {(one.a, one.b) for one in report.comparisons} == {("bm25", "vector"), ("bm25", "fts5")}
    assert [(one.control, one.variant) for one in report.contrasts] == [("bm25", "vector"), ("bm25", "fts5")]
    assert report.noise is not None
    assert (report.noise.control, report.noise.variant) == ("bm25", "bm25#2")
    assert max(one.done for one in seen if one.phase == "search") == 4 * 30


@pytest.mark.requirement("E2")
def test_a_pipeline_against_itself_has_no_ordering_difference_and_no_noise(mixed: Path) -> None:
    report = compare_pipelines(DatasetSource(mixed), ["default", "default"], environ=ENVIRON, now=NOW)
    (one,) = report.contrasts
    assert (one.ordering_differences, one.score_differences, one.kendall_tau_b) == (0, 0, 1.0)
    assert one.rbo == pytest.approx(1.0)
    assert one.differ_most == ()
    assert all((tally.wins, tally.ties, tally.losses) == (0, 30, 0) for tally in one.tallies.values())
    assert report.steady
    assert "no ordering difference" in said(report)
    assert "the control answered all 30 queries alike both times" in said(report)


def test_a_channel_that_is_missing_is_named_as_the_place_where_answers_part(mixed: Path) -> None:
    report = compare_pipelines(
        DatasetSource(mixed), [channels("bm25", "vector"), channels("vector")], environ=ENVIRON, now=NOW
    )
    (one,) = report.contrasts
    assert one.differ_most
    assert {differing.parted_at for differing in one.differ_most} == {"bm25 (only in the control)"}
    wins = one.tallies["nDCG@10"]
    assert wins.losses > wins.wins
    assert wins.wins + wins.ties + wins.losses == 30


def test_one_pipeline_with_values_changed_is_compared_with_itself_as_it_was(mixed: Path) -> None:
    changes = {"z_score.weights.bm25": "0"}
    report = compare_pipelines(DatasetSource(mixed), ["default"], overrides=changes, environ=ENVIRON, now=NOW)
    assert [pipeline["name"] for pipeline in report.pipelines] == ["default", "default#2"]
    assert report.pipelines[0]["hash"] != report.pipelines[1]["hash"]
    (one,) = report.contrasts
    assert {differing.parted_at for differing in one.differ_most} == {"z_score"}


def test_one_pipeline_as_it_is_is_no_comparison(mixed: Path) -> None:
    with refused("E030", match="a comparison takes two pipelines; found 1"):
        compare_pipelines(DatasetSource(mixed), ["default"], environ=ENVIRON)


def test_segments_are_those_of_the_controls_plan_and_add_up(tmp_path: Path) -> None:
    words = ["apricot", "quokka", "sextant", "vellum", "zeppelin"]
    asked = [
        (text, word) for word in words for text in (word, f"why did we choose {word} and what else was considered?")
    ]
    documents = [(word, f"note {n}", f"{' '.join(judged_sets.FILLER)} {word}") for n, word in enumerate(words)]
    folder = judged_sets.write(tmp_path / "kinds", documents, asked)
    short = {"pipeline": "short", "extends": "vector", "candidates": {"channels": [{"use": "vector", "limit": 1}]}}
    report = compare_pipelines(DatasetSource(folder), ["default", short], environ=ENVIRON, now=NOW)
    segments = report.contrasts[0].segments
    complexities = [segment for segment in segments if segment.by == "complexity"]
    assert len(complexities) > 1
    assert sum(segment.queries for segment in complexities) == 10
    assert all((segment.ci95 is None) == (segment.queries < 5) for segment in segments)
    assert "intent" in said(report, full=True)


def test_figures_of_run_files_are_those_of_the_comparison_that_wrote_them(mixed: Path, tmp_path: Path) -> None:
    run_file, qrels = tmp_path / "out.run", tmp_path / "qrels.txt"
    live = compare_pipelines(
        DatasetSource(mixed), ["bm25", "vector"], run_file=run_file, qrels_out=qrels, environ=ENVIRON, now=NOW
    )
    assert list(read_runs(run_file)) == ["bm25", "vector"]
    read = compare_runs([run_file], qrels)
    assert read.comparisons == live.comparisons
    for name in ("bm25", "vector"):
        for metric in METRICS:
            assert read.values[name][metric].tolist() == live.values[name][metric].tolist()
    assert (read.noise, read.documents) == (None, None)
    assert [one.ordering_differences for one in read.contrasts] == [one.ordering_differences for one in live.contrasts]


def test_judgements_in_the_form_of_a_dataset_serve_run_files_too(mixed: Path, tmp_path: Path) -> None:
    run_file = tmp_path / "out.run"
    live = compare_pipelines(DatasetSource(mixed), ["bm25", "vector"], run_file=run_file, environ=ENVIRON, now=NOW)
    assert compare_runs([run_file], mixed / "qrels" / "test.tsv").comparisons == live.comparisons


def test_queries_that_a_run_lacks_count_as_nothing_found_and_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq2 Q0 d2 1 2 a\nq9 Q0 d2 1 2 a\n")
    (tmp_path / "b.run").write_text("q1 Q0 d1 1 2 b\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d2 3\nq3 0 d1 0\n")
    report = compare_runs([tmp_path / "a.run", tmp_path / "b.run"], tmp_path / "qrels")
    assert (report.queries, report.no_relevant) == (("q1", "q2"), 1)
    assert report.values["b"]["Hit@1"].tolist() == [1.0, 0.0]
    assert list(report.all_warnings) == [
        "a holds 1 queries that are not judged; they are left out",
        "b has no answer to 1 of 2 judged queries; they count as 0",
    ]


def test_what_is_kept_quotes_no_query_and_pairs_to_the_digit(mixed: Path) -> None:
    report = compare_pipelines(DatasetSource(mixed), ["bm25", "vector"], environ=ENVIRON, now=NOW)
    kept = report.stored()
    assert (kept.id, kept.kind, kept.dataset, len(kept.id)) == (report.id, "compare", "mixed", 12)
    assert all("text" not in differing for one in kept.document["contrasts"] for differing in one["differ_most"])
    assert kept.document["per_query"]["queries"] == [f"q{number}" for number in range(30)]
    assert kept.document["per_query"]["values"]["bm25"]["Hit@1"] == report.values["bm25"]["Hit@1"].tolist()
    assert any("text" in differing for one in as_document(report)["contrasts"] for differing in one["differ_most"])


def test_the_same_comparison_has_the_same_id_and_another_one_another(mixed: Path, tmp_path: Path) -> None:
    ids = [
        compare_pipelines(DatasetSource(mixed), pipelines, queries=count, environ=ENVIRON, now=NOW).id
        for pipelines, count in ((["bm25", "vector"], 5), (["bm25", "vector"], 5), (["vector", "bm25"], 5),
                                 (["bm25", "vector"], 6))
    ]  # fmt: skip
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    other = judged_sets.titles(tmp_path / "mixed", by_title=10, by_text=10, by_mention=9)
    assert DatasetSource(mixed).ground({}).digest != DatasetSource(other).ground({}).digest
