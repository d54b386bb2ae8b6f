"""What is known before and after tasks, through the tools and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

TASK = {"specFolder": "specs/001", "taskId": "T1"}


def scored(knowledge: int, uncertainty: int, context: int, **more: Any) -> dict[str, Any]:
    return {
        **TASK, "knowledgeScore": knowledge, "uncertaintyScore": uncertainty, "contextScore": context, **more,
    }  # fmt: skip


@pytest.mark.requirement("M15", "T16", "T17", "T23")
def test_an_agent_records_what_it_knows_and_every_process_reads_what_tasks_taught(workspace: Path) -> None:
    begun, again, done = calls(
        workspace,
        ("task_preflight", scored(10, 90, 10)),
        ("task_preflight", scored(40, 60, 50, knowledgeGaps=["where the log is"], sessionId="s")),
        ("task_postflight", scored(80, 20, 70, gapsClosed=["where the log is"], newGapsDiscovered=["who reads it"])),
    )
    assert begun["data"]["before"] == {"knowledge": 10, "uncertainty": 90, "context": 10}
    assert again["data"]["knowledgeGaps"] == ["where the log is"]
    assert done["summary"] == "learning index 35 (moderate) for the task T1 of specs/001"
    told = {name: done["data"][name] for name in ("delta", "learning_index", "band", "phase")}
    delta = {"knowledge": 40, "uncertainty": 40, "context": 20}
    assert told == {"delta": delta, "learning_index": 35.0, "band": "moderate", "phase": "complete"}

    [found] = calls(workspace, ("memory_get_learning_history", {"specFolder": "specs/001/"}))
    [row] = found["data"]["tasks"]
    assert (row["before"]["knowledge"], row["after"]["knowledge"], row["sessionId"]) == (40, 80, "s")
    assert (row["gapsClosed"], row["newGapsDiscovered"]) == (["where the log is"], ["who reads it"])
    assert found["data"]["summary"] == {
        "tasks": 1, "complete": 1, "mean_knowledge": 40.0, "mean_uncertainty": 40.0, "mean_context": 20.0,
        "mean_learning_index": 35.0, "trend": "unknown",
    }  # fmt: skip
    ran = call(workspace, ["task", "history", "specs/001"]).ok()
    assert "moderate" in ran.out
    assert "knowledge +40" in ran.out


@pytest.mark.requirement("M15.records", "T16", "T17")
def test_a_record_is_corrected_until_the_task_is_complete_and_nothing_completes_what_never_began(
    workspace: Path,
) -> None:
    missing, _, done, corrected, late = calls(
        workspace,
        ("task_postflight", scored(50, 50, 50)),
        ("task_preflight", scored(40, 60, 50)),
        ("task_postflight", scored(50, 60, 50)),
        ("task_postflight", scored(60, 60, 50)),
        ("task_preflight", scored(0, 0, 0)),
    )
    assert missing["error"]["code"] == "E010"
    assert "no task_preflight is recorded for the task 'T1' in 'specs/001'" in missing["error"]["message"]
    assert (done["data"]["learning_index"], corrected["data"]["learning_index"]) == (4.0, 8.0)
    assert late["error"]["code"] == "E084"
    [found] = calls(workspace, ("memory_get_learning_history", {"specFolder": "specs/001"}))
    assert [row["learning_index"] for row in found["data"]["tasks"]] == [8.0]


@pytest.mark.requirement("M15", "T16")
def test_all_that_is_wrong_is_told_at_once(workspace: Path) -> None:
    [refused] = calls(workspace, ("task_preflight", {**TASK, "knowledgeScore": 101, "uncertaintyScore": -1}))
    codes = sorted(problem["code"] for problem in refused["errors"])
    assert codes == ["E031", "E032", "E032"]
    ran = call(workspace, ["task", "preflight", "specs", "t", "--knowledge", "101"])
    assert ran.status == 2


@pytest.mark.requirement("T16", "T17")
def test_a_folder_outside_the_workspace_has_no_tasks(workspace: Path) -> None:
    begun, done = calls(
        workspace,
        ("task_preflight", {**scored(1, 2, 3), "specFolder": "specs/../../other"}),
        ("task_postflight", {**scored(1, 2, 3), "specFolder": "../other"}),
    )

    assert (begun["error"]["code"], done["error"]["code"]) == ("E014", "E014")
