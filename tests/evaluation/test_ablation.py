from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from config.errors import SpeckitError
from engine import assembly
from evaluation.ablation import ablate, pipeline_text, unmentioned, without
from pipeline.builder import examine
from pipeline.effective import load

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
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    file = tmp_path / "two.yaml"
    file.write_text(PIPELINE, encoding="utf-8")
    return str(file)


def test_a_written_out_pipeline_is_the_same_pipeline(tmp_path: Path) -> None:
    for preset in ("default", "catalogue"):
        whole = examine(preset, assembly.registry(), ENVIRON)
        file = tmp_path / f"{preset}.yaml"
        file.write_text(pipeline_text(whole.effective), encoding="utf-8")
        again = examine(str(file), assembly.registry(), ENVIRON)
        assert (again.hash, again.effective.name, again.problems) == (whole.hash, whole.effective.name, ())


def test_flags_and_overrides_are_resolved_in_what_is_written(pipeline: str) -> None:
    whole = load(pipeline, ENVIRON, {"fuse.k": "20"})
    assert json.loads(pipeline_text(whole))["fusion"] == [{"use": "rrf", "id": "fuse", "k": 20}]


def test_a_variant_lacks_one_step_and_nothing_else(pipeline: str) -> None:
    whole = load(pipeline, ENVIRON)
    variant = without(whole, whole.slots["channels"][0])
    assert variant.name == "without fts5"
    assert [step.id for step in variant.steps()] == ["vector", "fuse"]


@pytest.mark.requirement("E6")
def test_each_step_is_measured_against_the_pipeline_without_it(write_dataset: Write, pipeline: str) -> None:
    report = ablate(write_dataset(), pipeline, environ=ENVIRON, now=NOW)
    assert [(worth.step, worth.slot) for worth in report.steps] == [("fts5", "channels"), ("vector", "channels")]
    assert [[(c.a, c.b, c.metric) for c in worth.comparisons] for worth in report.steps] == [
        [(f"without {step}", "two channels", metric) for metric in ("nDCG@10", "MRR@5")] for step in ("fts5", "vector")
    ]
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
    words, vectors = ablate(folder, str(file), environ=ENVIRON, now=NOW).steps
    assert [(worth.step, worth.comparisons[0].delta) for worth in (words, vectors)] == [("fts5", 1.0), ("vector", 0.0)]


def test_the_report_reads_as_json_and_as_a_table(write_dataset: Write, pipeline: str) -> None:
    report = ablate(write_dataset(), pipeline, environ=ENVIRON, now=NOW)
    document = json.loads(json.dumps(report.as_json()))
    assert document["pipeline"]["name"] == "two channels"
    assert [step["step"] for step in document["steps"]] == ["fts5", "vector"]
    lines = report.as_text().splitlines()
    assert lines[0] == "tiny: two channels, 3 queries; what each step adds to the pipeline without it"
    assert " ".join(lines[2].split()) == "step metric adds 95 % interval p adjusted verdict costs ms"
    assert [line.split()[0] for line in lines[3:7]] == ["fts5", "fts5", "vector", "vector"]
    assert lines[-1].startswith("fuse is needed: ")


def test_a_broken_pipeline_is_refused_with_its_problems(write_dataset: Write, pipeline: str) -> None:
    with pytest.raises(SpeckitError, match="no step 'fuze'"):
        ablate(write_dataset(), pipeline, overrides={"fuze.k": "1"}, environ=ENVIRON)


@pytest.mark.requirement("E6")
def test_a_channel_that_fusion_weighs_by_name_can_be_left_out_with_its_weight(
    write_dataset: Write, tmp_path: Path
) -> None:
    file = tmp_path / "weighed.yaml"
    fuser = "{use: z_score, id: fuse, weights: {fts5: 0.7, vector: 0.3}}"
    file.write_text(PIPELINE.replace("{use: rrf, id: fuse, k: 60}", fuser), encoding="utf-8")
    report = ablate(write_dataset(), str(file), environ=ENVIRON, now=NOW)
    assert [worth.step for worth in report.steps] == ["fts5", "vector"]
    assert list(report.needed) == ["fuse"]
    whole = load(str(file), ENVIRON)
    variant = json.loads(pipeline_text(unmentioned(without(whole, whole.slots["channels"][0]), "fts5")))
    assert variant["fusion"] == [{"use": "z_score", "id": "fuse", "weights": {"vector": 0.3}}]


def test_a_step_that_never_ran_is_not_said_to_have_no_effect(write_dataset: Write, pipeline: str) -> None:
    report = ablate(write_dataset(), pipeline, environ=ENVIRON, now=NOW)
    words, vectors = report.steps
    assert [worth.degraded_queries for worth in report.steps] == [0, 0]
    idle = replace(report, steps=(words, replace(vectors, degraded_queries=3)))
    verdicts = [" ".join(line.split()[7:-1]) for line in idle.as_text().splitlines()[3:7]]
    assert verdicts == ["undecided", "undecided", "did not run", "did not run"]
