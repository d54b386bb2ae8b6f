"""What kept evaluations measured, by time, through the command."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import EvaluationFigure, StoredEvaluation
from tests.server.doors import call

DAY = 86_400.0


def test_the_command_lists_what_a_comparison_kept_with_its_id(workspace: Path) -> None:
    old = StoredEvaluation("a" * 12, "eval gate", DAY, "mine", "d", {"pipelines": [{"name": "rsf", "hash": "c" * 12}]})
    with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
        database.keep(old, [EvaluationFigure("c" * 12, "nDCG@10", 0.25, 7)])
    compared = call(
        workspace, ["eval", "compare", "--own", "--pipeline", "default", "--pipeline", "bm25", "--json"]
    ).ok()

    ran = call(workspace, ["eval", "history", "--json"])

    first, *latest = ran.json["evaluations"]
    assert (first["id"], first["command"], first["at"], first["dataset"]) == ("a" * 12, "eval gate", DAY, "mine")
    assert (first["pipeline"], first["value"], first["queries"]) == ({"name": "rsf", "hash": "c" * 12}, 0.25, 7)
    assert {one["id"] for one in latest} == {compared.json["id"]}
    figures = {one["name"]: one["metrics"]["nDCG@10"] for one in compared.json["pipelines"]}
    assert {one["pipeline"]["name"]: one["value"] for one in latest} == figures
    assert "MRR@5" in ran.json["metrics"]
    lines = call(workspace, ["eval", "history"]).out.splitlines()
    assert len(lines) == 7
    assert lines[3].split()[:3] == ["1970-01-02", "00:00", "a" * 12]


def test_what_nobody_measured_is_said_with_what_was(workspace: Path) -> None:
    assert call(workspace, ["eval", "history"]).out == "No kept evaluation measured nDCG@10.\n"
    with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
        kept = StoredEvaluation("a" * 12, "eval gate", DAY, "mine", "d", {})
        database.keep(kept, [EvaluationFigure("c" * 12, "nDCG@10", 0.25, 7)])
    told = call(workspace, ["eval", "history", "--metric", "nDCG@5"]).out
    assert told == "No kept evaluation measured nDCG@5; there are figures of nDCG@10.\n"
