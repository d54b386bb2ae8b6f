from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from files import write_file
from judged_sets import titles
from rendered import said

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.tuning.ablation import AblationReport, ablate

Write = Callable[..., Path]

NOW = 1_790_000_000.0
ENVIRON: dict[str, str] = {}
PIPELINE = """\
pipeline: two channels
candidates:
  understand: []
  channels:
    - {use: fts5, limit: 20}
    - {use: vector, limit: 20}
  recover: []
fusion:
  - {use: rrf, id: fuse, k: 60}
rerank: []
annotate: []
extends: none
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    file = write_file(tmp_path / "two.yaml", PIPELINE)
    return str(file)


@pytest.mark.requirement("E6.steps")
def test_each_step_is_measured_against_the_pipeline_without_it(write_dataset: Write, pipeline: str) -> None:
    report = ablate([write_dataset()], pipeline, environ=ENVIRON, now=NOW)
    assert [(worth.step, worth.slot) for worth in report.steps] == [("fts5", "channels"), ("vector", "channels")]
    words, vectors = report.steps
    named = [("without fts5", "two channels", metric) for metric in ("nDCG@10", "MRR@5")]
    assert [(c.a, c.b, c.metric) for c in words.comparisons] == named
    assert [(c.a, c.b, c.metric) for c in words.by_dataset[0].comparisons] == named
    assert vectors.comparisons == ()
    assert list(report.needed) == ["fuse"]
    assert "needs a fuser" in report.needed["fuse"]


@pytest.mark.requirement("E6")
def test_a_channel_that_finds_what_the_others_miss_is_worth_its_share(write_dataset: Write, tmp_path: Path) -> None:
    # the one vector hit is the note about similar fruit; the word itself stands once in a long note about engines
    file = tmp_path / "words.yaml"
    file.write_text(PIPELINE.replace("{use: vector, limit: 20}", "{use: vector, limit: 1}"), encoding="utf-8")
    engines = "The engine turns the shaft, and the shaft turns the wheel of the mill. " * 5
    folder = write_dataset(
        corpus=[
            {"_id": "engines", "title": "Engines", "text": f"{engines} kumquat {engines}"},
            {"_id": "fruit", "title": "Citrus fruit", "text": "Tangerine, clementine, mandarin, orange and lemon."},
        ],
        queries=[{"_id": "q", "text": "kumquat"}],
        qrels=[("q", "engines", 1)],
    )
    words, vectors = ablate([folder], str(file), environ=ENVIRON, now=NOW).steps
    assert (words.comparisons[0].delta, words.verdict(1)) == (1.0, "undecided")
    assert (vectors.comparisons, vectors.verdict(1)) == ((), "not exercised")


BY_WORD = """\
pipeline: words
candidates:
  understand: []
  channels:
    - {use: bm25, id: names, fields: {title: 1, triggers: 0, path: 0, body: 0}}
    - {use: bm25, id: texts, fields: {title: 0, triggers: 0, path: 0, body: 1}}
  recover: []
fusion:
  - {use: rrf, id: fuse, k: 60}
rerank: [{use: min_max}]
annotate: []
extends: none
"""
"""A document that has the word in its title comes first, one that has it in its text second."""


@pytest.fixture
def of_two_sets(tmp_path: Path) -> AblationReport:
    """60 queries that a title answers, and 30 that a text answers."""
    file = write_file(tmp_path / "words.yaml", BY_WORD)
    sets = [titles(tmp_path / "long", by_title=60), titles(tmp_path / "short", by_text=30)]
    return ablate(sets, str(file), environ=ENVIRON, now=NOW)


@pytest.mark.requirement("E6")
def test_over_several_datasets_each_counts_the_same(of_two_sets: AblationReport) -> None:
    report = of_two_sets
    assert [(one.dataset, one.queries) for one in report.evaluations] == [("long", 60), ("short", 30)]
    verdicts = {worth.step: worth.verdict(report.queries) for worth in report.steps}
    assert verdicts == {"names": "pays", "texts": "pays", "min_max": "not exercised"}
    second = 1 / math.log2(3)
    gains = {worth.step: [c.delta for c in worth.comparisons if c.metric == "nDCG@10"] for worth in report.steps}
    assert gains == {"names": [pytest.approx(second / 2)], "texts": [pytest.approx(second / 2)], "min_max": []}
    shares = {worth.step: [[c.verdict for c in s.comparisons] for s in worth.by_dataset] for worth in report.steps}
    assert shares == {"names": [["better"] * 2, ["worse"] * 2], "texts": [[], ["better"] * 2], "min_max": [[], []]}


def test_the_report_reads_as_json_and_as_a_table(of_two_sets: AblationReport) -> None:
    document = json.loads(json.dumps(of_two_sets.as_report().data))
    sets = [(one["dataset"], one["pipeline"]["name"]) for one in document["datasets"]]
    assert sets == [("long", "words"), ("short", "words")]
    verdicts = [(step["step"], step["verdict"]) for step in document["steps"]]
    assert verdicts == [("names", "pays"), ("texts", "pays"), ("min_max", "not exercised")]
    assert document["steps"][2]["changed_answers"] == 90
    assert all([share["dataset"] for share in step["datasets"]] == ["long", "short"] for step in document["steps"])
    report = of_two_sets.as_report()
    assert (
        report.title == "words on long (60 queries), short (30 queries): what each step adds to the pipeline without it"
    )
    first, second = ([[cell.strip() for cell in row] for row in table.rows] for table in report.tables)
    assert first[0] == ["step", "metric", "adds", "95 % interval", "p adjusted", "verdict", "costs ms"]
    assert [row[:2] for row in first[1:]] == [[s, m] for s in ("names", "texts") for m in ("nDCG@10", "MRR@5")]
    assert second == [
        ["nDCG@10, * significant", "long", "short", "mean"],
        ["names", "+1.0000*", "-0.3691*", "+0.3155*"],
        ["texts", "0", "+0.6309*", "+0.3155*"],
        ["words", "1.0000", "0.6309", "0.8155"],
    ]
    assert report.notes[0] == "Not exercised (no metric of any query changes without them): min_max."
    assert report.notes[1] == "Answers that still change in scores or notes: min_max (90)."
    assert report.notes[2].startswith("fuse is needed: ")


def test_a_broken_pipeline_is_refused_with_its_problems(write_dataset: Write, pipeline: str) -> None:
    with pytest.raises(SpeckitError, match="no step 'fuze'"):
        ablate([write_dataset()], pipeline, overrides={"fuze.k": "1"}, environ=ENVIRON)


@pytest.mark.requirement("E6")
def test_a_channel_that_fusion_weighs_by_name_can_be_left_out_with_its_weight(
    write_dataset: Write, tmp_path: Path
) -> None:
    file = tmp_path / "weighed.yaml"
    fuser = "{use: z_score, id: fuse, weights: {fts5: 0.7, vector: 0.3}}"
    file.write_text(PIPELINE.replace("{use: rrf, id: fuse, k: 60}", fuser), encoding="utf-8")
    report = ablate([write_dataset()], str(file), environ=ENVIRON, now=NOW)
    assert [worth.step for worth in report.steps] == ["fts5", "vector"]
    assert list(report.needed) == ["fuse"]


def test_a_step_that_never_ran_is_not_said_to_have_no_effect(write_dataset: Write, pipeline: str) -> None:
    report = ablate([write_dataset()], pipeline, environ=ENVIRON, now=NOW)
    words, vectors = report.steps
    assert [worth.degraded_queries for worth in report.steps] == [0, 0]
    absent = replace(report, steps=(words, replace(vectors, degraded_queries=3)))
    assert [worth.verdict(3) for worth in absent.steps] == ["undecided", "did not run"]
    assert "Did not run, so nothing is known about them: vector." in said(absent).splitlines()


def test_the_reason_why_a_channel_is_needed_names_the_step_that_needs_it(write_dataset: Write, tmp_path: Path) -> None:
    file = tmp_path / "recovering.yaml"
    file.write_text(PIPELINE.replace("recover: []", "recover: [{use: fallback, lexical: [fts5]}]"), encoding="utf-8")
    report = ablate([write_dataset()], str(file), environ=ENVIRON, now=NOW)
    assert report.needed["fts5"] == (
        "'fallback': 'lexical' is empty: no channel is a declared channel for the last attempt; declared: vector"
    )
