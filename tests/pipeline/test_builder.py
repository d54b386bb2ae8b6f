"""What makes two configurations different, and what a flag does to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import build

BASE = """\
pipeline: base
budgets_ms: {simple: 30, moderate: 100, complex: 300, shadow: 500}
candidates:
  understand: []
  channels: [{use: bm25}, {use: vector}]
  recover: []
fusion: [{use: z_score, normalise: min_max}]
rerank: [{use: mmr}]
annotate: []
"""


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{use: mmr}", "{use: mmr, optional: true}"),
        ("{use: mmr}", "{use: mmr, id: other}"),
        ("{use: mmr}", "{use: min_max, id: mmr}"),
        ("{use: mmr}", "{use: mmr, lambda: 0.6}"),
        ("simple: 30", "simple: 31"),
        ("[{use: bm25}, {use: vector}]", "[{use: vector}, {use: bm25}]"),
    ],
)
def test_whatever_changes_what_runs_changes_the_hash(tmp_path: Path, before: str, after: str) -> None:
    assert before in BASE
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(BASE, encoding="utf-8")
    other.write_text(BASE.replace(before, after), encoding="utf-8")

    assert build(str(one), registry(), {}).hash != build(str(other), registry(), {}).hash


@pytest.mark.requirement("P2.flags")
def test_an_opened_store_obeys_the_flags_of_its_environment(tmp_path: Path) -> None:
    def steps(**environ: str) -> list[str]:
        with Memory.open(tmp_path / "m.db", "catalogue", root=tmp_path, environ=environ) as memory:
            return [step.use for step in (*memory.pipelines.current.rerank, *memory.pipelines.current.fusion.signals)]

    closed, opened = steps(), steps(SPECKIT_LATE_INTERACTION="true", SPECKIT_RECENCY_BOOST="true")

    assert {"maxsim", "standardise", "recency"}.isdisjoint(closed)
    assert {"maxsim", "standardise", "recency"} <= set(opened)
    assert steps(SPECKIT_LATE_INTERACTION="false") == closed
