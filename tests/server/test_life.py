"""Sessions, ageing and background work through the doors that people and agents use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from raw_server import raw_server

from speckit_memory.engine import Memory
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

DAY = 86_400.0
NAMES = [
    *("sessions", "expiry", "archival", "vectors", "verdicts", "contradictions", "consolidation", "learning"),
    *("summaries", "absent", "ranks"),
]


def stored(root: Path, sql: str) -> list[Any]:
    """What another process finds in the store."""
    with Database.open(root / "memory.db") as database:
        return rows(database.reader(), sql)


def attended(root: Path, session: str = "s") -> list[str]:
    """What a session that is resumed is told it attended to."""
    ran = call(root, ["search", "continue", "--mode", "resume", "--session", session, "--json"]).ok()
    return [memory["key"] for memory in ran.json["notes"]["attended"]]


@pytest.mark.requirement("M13.crash", "M4.fed")
@pytest.mark.usefixtures("processes")
def test_what_a_session_attended_to_outlives_a_killed_server_and_is_what_a_resumed_one_sees_first(
    workspace: Path,
) -> None:
    asked = {"query": "why are ranks fused", "limit": 2, "sessionId": "s"}
    with raw_server(workspace, "--no-warm-up", spawned=True) as server:
        server.start()
        answer = server.call(2, "memory_search", asked)
        os.kill(server.process.pid, signal.SIGKILL)
    served = [row["key"] for row in answer["structuredContent"]["data"]["results"]]
    assert len(served) == 2

    [resumed] = calls(workspace, ("memory_context", {"input": "continue", "sessionId": "s"}))
    assert [memory["key"] for memory in resumed["data"]["attended"]] == served
    assert [memory["attention"] for memory in resumed["data"]["attended"]] == [1.0, 0.85]
    # who resumes has lost what was sent before, so that it may be sent again
    [again] = calls(workspace, ("memory_search", asked))
    shown = {row["key"] for row in resumed["data"]["results"]}
    assert {row["key"] for row in again["data"]["results"]} == set(served) - shown
    [other] = calls(workspace, ("memory_context", {"input": "continue", "sessionId": "another"}))
    assert "attended" not in other["data"]


@pytest.mark.requirement("M4.fed")
def test_a_session_attends_to_what_it_saves_and_what_it_asks_again_is_mentioned(workspace: Path) -> None:
    (workspace / "docs/new.md").write_text("# Quarterly plan\n\nWhat is done by autumn.\n")
    saved = {"filePath": "docs/new.md", "sessionId": "s"}
    search = {"query": "why are ranks fused", "limit": 1, "sessionId": "s"}
    calls(workspace, ("memory_save", saved), ("memory_search", search), ("memory_search", search))
    found = stored(
        workspace,
        "SELECT m.key, w.source, w.source_call <> '', w.mention_count, w.event_counter FROM working_memory w "
        "JOIN memories m ON m.id = w.memory_id ORDER BY m.key",
    )
    assert found == [("docs/fusion.md", "answer", 1, 1, 3), ("docs/new.md", "save", 0, 0, 1)]
    assert attended(workspace) == ["docs/fusion.md", "docs/new.md"]


@pytest.mark.requirement("M4.fed", "M4.origin")
def test_a_session_attends_to_what_it_reads_by_key(workspace: Path) -> None:
    read = {"key": "docs/tone.md", "sessionId": "s"}
    search = {"query": "why are ranks fused", "limit": 1, "sessionId": "s"}
    calls(workspace, ("memory_search", search), ("memory_search", read), ("memory_search", {"key": "docs/cjk.md"}))
    assert call(workspace, ["show", "docs/storage/backup.md", "--session", "s"]).status == 0
    assert call(workspace, ["show", "docs/long.md"]).status == 0  # of no session
    assert call(workspace, ["show", "docs/storage/wal.md", "--session", "another"]).status == 0
    [resumed] = calls(workspace, ("memory_context", {"input": "continue", "sessionId": "s"}))
    assert [(one["key"], one["source"], one["attention"]) for one in resumed["data"]["attended"]] == [
        ("docs/storage/backup.md", "read", 1.0), ("docs/tone.md", "read", 0.85), ("docs/fusion.md", "answer", 0.7225),
    ]  # fmt: skip
    assert attended(workspace, "another") == ["docs/storage/wal.md"]


@pytest.mark.requirement("M13.crash")
def test_the_text_for_a_reader_says_what_the_session_attended_to(workspace: Path) -> None:
    call(workspace, ["search", "why are ranks fused", "--limit", "1", "--session", "s"])
    ran = call(workspace, ["search", "continue", "--mode", "resume", "--session", "s"])
    assert "this session attended to: docs/fusion.md" in ran.out
    assert "attended" not in call(workspace, ["search", "continue", "--mode", "resume"]).out


@pytest.mark.requirement("M2.driven")
def test_what_is_opened_or_cited_is_reviewed_and_what_is_only_served_is_not(workspace: Path) -> None:
    def reviews() -> dict[str, int]:
        return dict(stored(workspace, "SELECT key, review_count FROM memories WHERE review_count > 0"))

    calls(workspace, ("memory_search", {"query": "why are ranks fused", "limit": 2}))
    assert reviews() == {}
    calls(workspace, ("memory_search", {"query": "online backup", "limit": 1, "includeContent": True}))
    assert reviews() == {"docs/storage/backup.md": 1}
    (workspace / "docs/new.md").write_text("# Ranks\n\nAs docs/fusion.md says, and docs/tone.md does not.\n")
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.feedback.delivered(memory.search("why are ranks fused", limit=1))
        memory.documents.save(workspace / "docs/new.md")
        assert reviews() == {"docs/storage/backup.md": 1}  # no save waits for that
    assert reviews() == {"docs/storage/backup.md": 1, "docs/fusion.md": 1}


def aged(root: Path, key: str) -> None:
    """Makes a memory old and doubted."""
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        for _ in range(3):
            memory.learning.validate(key, useful=False)
        old = time.time() - 91 * DAY
        with memory.session.database.write() as txn:
            txn.connection.execute("UPDATE memories SET created_at = ?1, updated_at = ?1 WHERE key = ?2", (old, key))
            txn.connection.execute(
                "INSERT INTO changes (memory_id, kind, token) VALUES (?, 'put', random())", (memory.get(key).id,)
            )


@pytest.mark.requirement("M5.command")
def test_maintenance_from_the_console_archives_what_is_due_and_unarchive_takes_it_back(workspace: Path) -> None:
    key = "docs/storage/backup.md"

    def found() -> list[str]:
        return [row["key"] for row in call(workspace, ["search", "online backup", "--json"]).json["results"]]

    aged(workspace, key)
    planned = call(workspace, ["maintain", "--dry-run", "--json"])
    assert (planned.status, planned.json["dry_run"], planned.json["elsewhere"]) == (0, True, False)
    assert [(job["job"], job["state"], job["count"]) for job in planned.json["jobs"]] == [
        ("sessions", "waiting", 0), ("expiry", "waiting", 0), ("archival", "waiting", 1),
        ("vectors", "waiting", 0), ("verdicts", "waiting", 0), ("contradictions", "waiting", 6),
        ("consolidation", "waiting", 0), ("learning", "waiting", 0), ("summaries", "waiting", 0),
        ("absent", "waiting", 0), ("ranks", "waiting", 0),
    ]  # fmt: skip
    assert "would be run: 1 unused memories archived" in call(workspace, ["maintain", "--dry-run"]).out

    done = call(workspace, ["maintain", "--json"])
    assert (done.status, done.json["jobs"][2]["state"], done.json["jobs"][2]["count"]) == (0, "ran", 1)
    assert key not in found()
    assert call(workspace, ["maintain"]).out.count("not due") == len(NAMES)
    [archived] = call(workspace, ["unarchive", "--json"]).json["archived"]
    assert (archived["key"], archived["reason"]) == (key, "unused")
    assert key in call(workspace, ["unarchive"]).out
    why = call(workspace, ["search", "online backup", "--why-not", key, "--json"]).json
    assert why["why_not"].endswith("it has expired or was archived.")
    assert "reading it by its key shows how to restore it" in why["why_not_change"]["sentence"]
    [told] = [check for check in call(workspace, ["doctor", "--json"]).json["checks"] if check["name"] == "maintenance"]
    assert told["verdict"] == "ok"
    assert "1 unused memories archived" in told["detail"]

    assert call(workspace, ["unarchive", "nothing.md"]).status == 2
    assert call(workspace, ["unarchive", key, "--json"]).json == {"restored": [key], "memories": [key]}
    assert key in found()
    assert "was not archived" in call(workspace, ["unarchive", key]).out


@pytest.mark.requirement("M5.command", "T10")
def test_who_reads_an_archived_memory_is_told_and_finding_it_useful_takes_it_back(workspace: Path) -> None:
    key = "docs/storage/backup.md"
    search = ("memory_search", {"query": "online backup"})

    def useful(was: bool) -> tuple[str, dict[str, Any]]:
        return "memory_validate", {"id": key, "wasUseful": was}

    for one in (key, "docs/tone.md"):
        aged(workspace, one)
    assert call(workspace, ["maintain"]).status == 0
    shown = call(workspace, ["show", key]).ok()
    assert "(unused): no search finds it; `unarchive` brings it back" in " ".join(shown.err.split())
    assert call(workspace, ["show", key, "--json"]).json["archived"]["reason"] == "unused"

    read, not_useful, before, judged, after, again, later = calls(
        workspace, ("memory_search", {"key": key}), useful(False), search, useful(True), search, useful(True),
        ("memory_search", {"key": key}),
    )  # fmt: skip
    assert [hint for hint in read["hints"] if "memory_validate as useful brings it back" in hint]
    assert read["data"]["archived"]["reason"] == "unused"
    assert "restored" not in not_useful["data"]
    assert key not in [row["key"] for row in before["data"]["results"]]
    assert judged["data"]["restored"] is True
    assert "it was archived: searches find it again" in judged["hints"]
    assert key in [row["key"] for row in after["data"]["results"]]
    assert "restored" not in again["data"] and not [hint for hint in again["hints"] if "archived" in hint]
    assert "archived" not in later["data"]
    assert "it was archived: searches find it again" in call(workspace, ["validate", "docs/tone.md", "--useful"]).out
    assert call(workspace, ["unarchive", "--json"]).json["archived"] == []


@pytest.mark.requirement("M5.command")
def test_maintenance_without_a_store_says_how_to_make_one(tmp_path: Path) -> None:
    call(tmp_path, ["maintain", "--json"]).refused("E010")
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.requirement("M5.one")
@pytest.mark.usefixtures("processes")
def test_of_ten_processes_that_start_at_once_one_does_the_work(workspace: Path) -> None:
    aged(workspace, "docs/tone.md")
    code = (
        "import sys, json\nfrom dataclasses import asdict\nfrom speckit_memory.engine import Memory\n"
        "with Memory.open(sys.argv[1], root=sys.argv[2], environ={}) as memory:\n"
        "    sys.stdin.readline()\n    print(json.dumps(asdict(memory.lifecycle.maintain())))\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, workspace / "memory.db", workspace],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    found = [json.loads(worker.communicate(timeout=240)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 10
    ran = sorted((job["job"], job["count"]) for one in found for job in one["jobs"] if job["state"] == "ran")
    counts = {"archival": 1, "contradictions": 5}  # all but the one that was archived
    assert ran == [(name, counts.get(name, 0)) for name in sorted(NAMES)]


@pytest.mark.requirement("M5.jobs")
@pytest.mark.usefixtures("processes")
def test_a_server_does_the_background_work_beside_its_answers(workspace: Path) -> None:
    aged(workspace, "docs/tone.md")
    with raw_server(workspace, spawned=True) as server:
        server.start()
        ended = "SELECT job FROM job_runs WHERE ended_at IS NOT NULL AND failure = '' AND NOT remains ORDER BY job"
        while len(stored(workspace, ended)) < len(NAMES):
            assert server.process.poll() is None
        assert server.close() == 0
    assert stored(workspace, "SELECT key FROM archivals JOIN memories ON id = memory_id") == [("docs/tone.md",)]
    compared = "SELECT key FROM scanned_memories JOIN memories ON id = memory_id WHERE key = 'docs/tone.md'"
    assert stored(workspace, "SELECT count(*) FROM scanned_memories") == [(5,)]
    assert stored(workspace, compared) == []  # it was archived before
