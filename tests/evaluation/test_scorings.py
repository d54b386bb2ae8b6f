"""What steps did to scores and ranks, over the sample of answers that is kept in detail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rendered import said

from speckit_memory.engine import Memory
from speckit_memory.evaluation.experiments.scorings import StepMoves, step_effects
from speckit_memory.memory.store.evaluation.records import PipelineRecord, ScoredStep, ScoreSample
from tests.server.doors import call


def scored(number: int, *steps: tuple[str, tuple[float, ...]]) -> ScoreSample:
    made = tuple(ScoredStep(step, "sum", (), (), after) for step, after in steps)
    return ScoreSample(f"{number:016x}", "c" * 12, 1000.0 + number, tuple(range(len(steps[0][1]))), made, {})


@pytest.mark.requirement("E7.moves")
def test_each_step_says_how_often_and_how_much_it_moved_scores_and_ranks() -> None:
    first = scored(1, ("fusion", (3.0, 2.0, 1.0)), ("boost", (3.0, 2.0, 4.0)), ("mmr", (3.0, 2.0, 4.0)))
    second = scored(2, ("fusion", (3.0, 2.0, 1.0)), ("mmr", (3.5, 2.0, 1.0)))
    empty = ScoreSample("f" * 16, "c" * 12, 1.0, (), (), {})
    report = step_effects([second, first, empty], {"c" * 12: PipelineRecord("c" * 12, "mine")})
    [pipeline] = report.pipelines
    assert (pipeline.name, pipeline.queries) == ("mine", 2)
    assert pipeline.steps == (
        StepMoves("fusion", 2, None, None, None, None),
        StepMoves("boost", 1, 1.0, 1.0, 1.0, 4 / 3),
        StepMoves("mmr", 2, 0.5, 0.5 / 6, 0.0, 0.0),
    )
    assert "boost         1          100%  1.0000         100%  1.33" in said(report)
    assert "no answer of that period is kept in detail" in said(step_effects([empty], {}))


@pytest.mark.requirement("E7.moves")
def test_the_command_reads_what_searches_left(workspace: Path) -> None:
    config = workspace / ".speckit" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("evaluation: {observe: 1}\n")
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
        expected = memory.pipelines.current.hash
    [pipeline] = json.loads(call(workspace, ["eval", "scorings", "--json"]).ok().out)["pipelines"]
    assert (pipeline["hash"], pipeline["name"], pipeline["queries"]) == (expected, "default", 1)
    assert pipeline["steps"][0]["moved_scores"] is None
    assert len(pipeline["steps"]) > 1
