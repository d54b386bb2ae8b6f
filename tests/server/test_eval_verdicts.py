"""What `eval run` and `eval compare` say of equal pipelines and of a planted regression, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import judged_sets
import pytest

from tests.server.doors import call

TWO = """\
pipeline: two
extends: none
candidates: {channels: [{use: bm25}, {use: vector}]}
fusion: [{use: z_score, weights: {bm25: 1.0, vector: 1.0}}]
"""


@pytest.mark.requirement("E2.metrics")
@pytest.mark.usefixtures("exhaustive")
def test_a_pipeline_against_itself_over_300_queries_shows_no_difference(tmp_path: Path) -> None:
    topics = judged_sets.titles(tmp_path / "topics", by_title=100, by_text=100, by_mention=100)
    twice = ["--pipeline", "default", "--pipeline", "default"]
    ran = call(tmp_path, ["eval", "compare", "--dataset", topics, *twice, "--json"])
    assert (ran.status, ran.json["queries"]) == (0, 300)
    for one in ran.json["comparisons"]:
        assert (one["delta"], one["p_adjusted"], one["verdict"]) == (0.0, 1.0, "undecided")
        assert one["ci95"] == [pytest.approx(-0.020, abs=0.001), pytest.approx(0.020, abs=0.001)]
        assert 1_000 < one["queries_needed"] < 1_300, "300 queries leave losses possible that none of them shows"
    (contrast,) = ran.json["contrasts"]
    assert (contrast["ordering_differences"], contrast["kendall_tau_b"], contrast["rbo"]) == (0, 1.0, 1.0)


@pytest.mark.requirement("E2.metrics")
@pytest.mark.parametrize("planted", ["a channel off", "a weight of 0"])
def test_a_planted_regression_is_worse_with_its_interval(tmp_path: Path, planted: str) -> None:
    topics = judged_sets.titles(tmp_path / "topics", by_title=10, by_text=10, by_mention=10)
    weaker = TWO.replace("pipeline: two", "pipeline: weaker")
    if planted == "a channel off":
        weaker = weaker.replace("{use: bm25}, ", "").replace("bm25: 1.0, ", "")
    else:
        weaker = weaker.replace("bm25: 1.0", "bm25: 0.0")
    for name, text in (("two", TWO), ("weaker", weaker)):
        (tmp_path / f"{name}.yaml").write_text(text)
    files: list[str | Path] = ["--pipeline", tmp_path / "two.yaml", "--pipeline", tmp_path / "weaker.yaml"]
    ran = call(tmp_path, ["eval", "run", "--dataset", topics, *files, "--json"]).ok()
    for one in ran.json["comparisons"]:
        low, high = one["ci95"]
        assert (one["verdict"], one["queries_needed"]) == ("worse", None)
        assert low <= one["delta"] <= high < 0


DOCUMENTS = [
    {"_id": "law", "title": "Law", "text": "Never push on Friday.", "metadata": {"tier": "constitutional"}},
    {"_id": "old", "title": "Push", "text": "How to push a branch.", "metadata": {"created_at": "2020-01-01"}},
    {"_id": "cat", "title": "Cat", "text": "A cat sat on the mat."},
]


@pytest.mark.requirement("E2.meaning")
def test_eval_run_reports_further_metrics_with_the_queries_they_are_means_of(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    queries = [
        {"_id": "q1", "text": "push a branch", "metadata": {"intent": "fix_bug"}},
        {"_id": "q2", "text": "cat on the mat"},
    ]
    for name, records in (("corpus", DOCUMENTS), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\told\t2\nq1\tlaw\t1\nq2\tcat\t1\n")
    options: list[str | Path] = ["eval", "run", "--dataset", folder, "--pipeline", "bm25"]
    (pipeline,) = call(tmp_path, [*options, "--json"]).json["pipelines"]
    assert {metric: figure["n"] for metric, figure in pipeline["further_metrics"].items()} == {
        "MAP@20": 2, "P@5": 2, "inversion rate": 1, "constitutional@5": 2, "importance-weighted recall@20": 2,
        "cold start@10": 0, "intent-weighted nDCG@10": 1, "quality proxy": 2,
    }  # fmt: skip
    assert pipeline["further_metrics"]["cold start@10"]["mean"] is None
    assert pipeline["further_metrics"]["importance-weighted recall@20"]["mean"] == 1.0
    assert pipeline["channel_attribution"]["channels"] == {"bm25": {"coverage": 1.0, "exclusive": 1.0}}
    lines = call(tmp_path, options).out.splitlines()
    heading = next(number for number, line in enumerate(lines) if "inverted" in line)
    assert " - " in lines[heading + 1], "nothing new to find"
    assert "bm25: the first ten were found by bm25 100% (alone 100%)" in lines
