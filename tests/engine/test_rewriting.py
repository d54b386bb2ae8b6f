from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.pipelines.sources import pipeline_text
from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.builder import examine

FILE = """\
# What this pipeline is for.
pipeline: by hand  # a remark
candidates:
  understand: []
  channels:
    # Words count most.
    - use: bm25
      k1: 1.2  # the usual value
      # A title says more.
      single: {title: 0.5}
    - {use: vector}
    # No fts5.
  recover: []
fusion: [{use: z_score, weights: {bm25: 0.7, vector: 0.3}}]
rerank: []
annotate: []
extends: none
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hand.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def hash_of(source: str | Path, **overrides: str) -> str:
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    checked = examine(str(source), components.registry(), {}, dotted)
    assert checked.problems == ()
    return checked.hash


def test_changed_values_stand_where_the_old_ones_stood_and_all_comments_stay(file: Path, tmp_path: Path) -> None:
    overrides = {
        "bm25.k1": "1.05",
        "bm25.b": "0.6",
        "bm25.single": '{"title": 0.7, "triggers": 0.0, "path": 0.0, "body": 0.1}',
        "vector.limit": "30",
        "vector.context": "0.2",
        "vector.min_similarity": "0.1",
        "z_score.weights": '{"bm25": 0.65, "vector": 0.3}',
    }
    text = pipelines.pipeline_text_with(
        str(file), {}, overrides, file=Path("by machine.yaml"),
        heading=["Made today.", ""], remarks={"bm25": ["k1: 1.2 -> 1.05"], "z_score": ["weights"]},
    )  # fmt: skip
    assert (
        text
        == """\
# Made today.
#

# What this pipeline is for.
pipeline: "by machine"  # a remark
candidates:
  understand: []
  channels:
    # Words count most.
    # k1: 1.2 -> 1.05
    - use: bm25
      k1: 1.05  # the usual value
      # A title says more.
      single: {title: 0.7, body: 0.1}
      b: 0.6
    - {use: vector, limit: 30, context: 0.2, min_similarity: 0.1}
    # No fts5.
  recover: []
# weights
fusion: [{use: z_score, weights: {bm25: 0.65, vector: 0.3}}]
rerank: []
annotate: []
extends: none
"""
    )
    made = tmp_path / "made.yaml"
    made.write_text(text, encoding="utf-8")
    assert hash_of(made) == hash_of(file, **{name.replace(".", "__"): value for name, value in overrides.items()})


def test_a_shipped_pipeline_keeps_its_comments() -> None:
    text = pipelines.pipeline_text_with(
        "default", {}, {"bm25.k1": "1.15"}, file=Path("default.yaml"), heading=[], remarks={}
    )
    before = pipeline_text("default")[0].splitlines()
    after = text.splitlines()
    assert len(after) == len(before)
    assert [new.strip() for new, old in zip(after, before, strict=True) if new != old] == ["k1: 1.15"]


def test_what_a_file_inherits_or_writes_in_short_is_written_anew(tmp_path: Path) -> None:
    heir = tmp_path / "heir.yaml"
    heir.write_text("# mine\nrerank:\n  - regularise\n", encoding="utf-8")
    for overrides in ({"bm25.k1": "1.05"}, {"regularise.weight": "0.1"}):
        text = pipelines.pipeline_text_with(
            str(heir), {}, overrides, file=Path("made.yaml"), heading=["top"], remarks={"regularise": ["r"]}
        )
        made = tmp_path / "made.yaml"
        made.write_text(text, encoding="utf-8")
        assert text.startswith("# top\npipeline: made\n")
        assert "  # r\n  - {use: regularise" in text
        assert hash_of(made) == hash_of(heir, **{name.replace(".", "__"): value for name, value in overrides.items()})


def test_a_file_without_a_name_gets_one(tmp_path: Path) -> None:
    nameless = tmp_path / "nameless.yaml"
    nameless.write_text("# mine\nrerank: []  # none\n", encoding="utf-8")
    text = pipelines.pipeline_text_with(str(nameless), {}, {}, file=Path("made.yaml"), heading=[], remarks={})
    assert text == "# mine\npipeline: made\nrerank: []  # none\n"
