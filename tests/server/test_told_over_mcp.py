"""What is wrong or unusual is said by the tools themselves: failing variants, mixed answers, searches over budget."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from speckit_memory.engine import Memory
from speckit_memory.engine.diagnostics.health_report import HealthCheck, HealthReport
from speckit_memory.engine.recording.recording_health import ENOUGH
from speckit_memory.engine.shadowing.replays import epoch_of
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    Observation,
    PipelineRecord,
    QueryRecord,
    Replay,
    VariantRecord,
)
from tests.server.doors import call, with_client
from tests.server.test_interleaving import ASK, BM25, SHADOWS, VECTOR
from tests.server.test_mcp_stdio import calls

HEALTH: tuple[str, dict[str, Any]] = ("memory_health", {})


def pipeline_file(workspace: Path, text: str, name: str = "pipeline.yaml") -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / name).write_text(text, encoding="utf-8")


def note(workspace: Path, times: dict[str, list[float]], failing: str = "", failures: int = 0) -> None:
    """Notes searches of the pipeline in force that took so many milliseconds each, the first of which a shadow with
    this hash failed on when they were replayed."""
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        control, epoch = memory.pipelines.current, epoch_of(memory.session.opened)
    seen, replays = [], []
    for complexity, each in times.items():
        for number, ms in enumerate(each):
            query = QueryRecord(
                id=f"{complexity}{number:08}", at=time.time(), intent="", complexity=complexity, folder="",
                mode="auto", limit=10, wordings=1, session="", store="s", state=1,
            )  # fmt: skip
            answer = AnswerRecord(control.hash, total_ms=ms)
            seen.append(Observation(query, answer))
            if number < failures:
                failed = VariantRecord("shadow", AnswerRecord(failing, failure="ValueError in rerank"))
                arm = Arm(control.hash, failing, epoch)
                replays.append(Replay(query.id, arm, "served", 1, answer, failed))
    with EvaluationDatabase.open(evaluation_file(workspace / "memory.db")) as database:
        database.record(seen, pipelines=[PipelineRecord(control.hash, control.name)])
        database.replayed(replays)


@pytest.mark.requirement("T7.first")
@pytest.mark.parametrize("failures", [1, 3])
def test_the_health_report_is_not_well_while_a_variant_fails(workspace: Path, failures: int) -> None:
    pipeline_file(workspace, "extends: default\nshadows: [rrf, bm25]\n")
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        failing = next(one.hash for one in memory.shadows.list() if one.name == "bm25")
    note(workspace, {"simple": [1.0] * 5}, failing, failures)
    [health] = calls(workspace, HEALTH)
    assert health["summary"] == "problems with shadows"
    first = health["data"]["checks"][0]
    assert (first["name"], first["ok"]) == ("shadows", False)
    assert first["detail"].startswith("1 of 2 fail; 'bm25' in shadow") and f"{failures} failed" in first["detail"]
    assert "speckit-memory shadow report" in first["hint"]
    doctor = call(workspace, ["doctor", "--json"])
    assert [check["name"] for check in doctor.json["checks"] if check["verdict"] == "fail"] == ["shadows"]


@pytest.mark.requirement("T7.first")
def test_all_that_is_wrong_and_all_warnings_stand_in_the_health_report_whatever_its_budget(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = "some long explanation of what was found at a place, and of what was expected there instead " * 4
    checks = [
        HealthCheck(f"check-{number}", number % 3 > 0, f"{number} {detail}", "" if number % 3 == 2 else "Mend it.")
        for number in range(24)
    ]
    monkeypatch.setattr(Memory, "status", lambda _: HealthReport(tuple(checks)))

    async def ask(client: Client) -> Any:
        return (await client.call_tool("memory_health")).structured_content

    health = with_client(workspace, ask, "--no-warm-up")
    shown = [check["name"] for check in health["data"]["checks"]]
    told = [*(check for check in checks if not check.ok), *(check for check in checks if check.ok and check.hint)]
    assert shown[: len(told)] == [check.name for check in told]
    assert [check["detail"] for check in health["data"]["checks"][: len(told)]] == [check.detail for check in told]
    assert health["meta"]["token_count"] <= health["meta"]["token_budget"]
    assert len(shown) < len(checks)  # what is in order gives way


@pytest.mark.requirement("P5.mixed")
@pytest.mark.parametrize("ask", [ASK, ("memory_context", {"input": ASK[1]["query"], "mode": "focused"})])
def test_a_mixed_answer_says_so_and_one_of_the_pipeline_alone_does_not(workspace: Path, ask: Any) -> None:
    pipeline_file(workspace, SHADOWS + BM25)
    pipeline_file(workspace, VECTOR, "meaning.yaml")
    [mixed] = calls(workspace, ask)
    assert mixed["hints"][0].startswith("an interleaved answer: its rows alternate between the pipelines ")
    assert "'meaning' (" in mixed["hints"][0]
    pipeline_file(workspace, BM25)
    [alone] = calls(workspace, ask)
    assert "mixed" not in str(alone["hints"])


@pytest.mark.requirement("P10.noted")
@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"simple": [29.0] * ENOUGH}, "simple 29.0 ms, under 30 (20 searches)"),
        ({"simple": [31.0] * ENOUGH}, "simple 31.0 ms, over 30 (20 searches)"),
        ({"moderate": [5.0] * 38 + [400.0] * 2}, "moderate 24.7 ms, under 100 (40 searches)"),
        ({"moderate": [5.0] * 37 + [400.0] * 3}, "moderate 400.0 ms, over 100 (40 searches)"),
        ({"complex": [301.0] * ENOUGH, "simple": [1.0] * ENOUGH}, "complex 301.0 ms, over 300 (20 searches); simple"),
        ({"simple": [900.0] * (ENOUGH - 1)}, "not known: fewer than 20 searches"),
    ],
)
def test_health_and_doctor_warn_when_the_searches_that_were_noted_break_their_budget(
    workspace: Path, times: dict[str, list[float]], told: str
) -> None:
    note(workspace, times)
    [health] = calls(workspace, HEALTH)
    [latency] = [check for check in health["data"]["checks"] if check["name"] == "latency"]
    assert told in latency["detail"]
    over = ", over " in told
    assert latency["ok"] and bool(latency["hint"]) == over
    assert health["summary"] == ("in order, with remarks on latency" if over else "everything is in order")
    if over:
        assert health["data"]["checks"][0]["name"] == "latency"
    doctor = call(workspace, ["doctor", "--json"])
    verdict = next(check["verdict"] for check in doctor.json["checks"] if check["name"] == "latency")
    assert (doctor.status, verdict) == (0, "warn" if over else "ok")


@pytest.mark.requirement("T5.newest")
def test_a_note_of_this_minute_is_the_newest_though_it_says_the_day_alone(workspace: Path) -> None:
    now = time.time()
    today, yesterday = (time.strftime("%Y-%m-%d", time.gmtime(now - days * 86_400)) for days in (0, 1))
    (workspace / "notes").mkdir()
    for name, created in (("early", ""), ("minute", today), ("older", yesterday), ("exact", f"{today}T00:00:01Z")):
        front = f"---\ncreated: {created}\n---\n" if created else ""
        (workspace / "notes" / f"{name}.md").write_text(f"{front}# {name}\n\nThe note {name}.\n", encoding="utf-8")
    for age, name in enumerate(("minute", "early", "older", "exact"), start=1):
        os.utime(workspace / "notes" / f"{name}.md", (now - age, now - age))
    os.utime(workspace / "notes" / "older.md", (now - 86_400 * 30, now - 86_400 * 30))
    assert call(workspace, ["index", "notes"]).status == 0
    [listed] = calls(workspace, ("memory_list", {"specFolder": "notes"}))
    keys = [row["key"] for row in listed["data"]["memories"]]
    assert keys == ["notes/minute.md", "notes/early.md", "notes/exact.md", "notes/older.md"]
    assert [row["key"] for row in call(workspace, ["list", "--folder", "notes", "--json"]).json["memories"]] == keys
