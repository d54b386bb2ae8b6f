"""Contradictions, staleness and links that grow with use, through the doors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from tests.server.doors import call
from tests.server.test_life import stored
from tests.server.test_mcp_stdio import calls

OLD = "# Cache of answers\n\nThe cache of answers lives in Redis and is kept for one hour by every worker.\n"
NEW = "# Cache of answers\n\nThe cache of answers no longer lives in Redis and is kept for one hour by every worker.\n"
CATS = "# Cats\n\nCats sleep in the sun.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, (name, text) in enumerate({"old": OLD, "cats": CATS, "new": NEW}.items()):
        (tmp_path / f"{name}.md").write_text(f"---\ncreated: 2026-0{number + 1}-01\n---\n{text}")
    assert call(tmp_path, ["index", "."]).status == 0
    return tmp_path


def counts(ran: Any) -> dict[str, tuple[str, int]]:
    return {job["job"]: (job["state"], job["count"]) for job in ran.json["jobs"]}


@pytest.mark.requirement("M11.scan", "M11.job", "M11.nothing", "M11.stale")
def test_the_weekly_scan_tells_a_contradiction_and_changes_nothing(folder: Path) -> None:
    assert counts(call(folder, ["maintain", "--dry-run", "--json"]))["contradictions"] == ("waiting", 3)
    before = stored(folder, "SELECT key, content_hash, stability, confidence FROM memories ORDER BY key")
    assert counts(call(folder, ["maintain", "--json"]))["contradictions"] == ("ran", 3)
    [pair] = call(folder, ["links", "review", "--json"]).json["contradictions"]
    assert (pair["newer"], pair["older"], pair["pattern"]) == ("new.md", "old.md", "negation")
    assert pair["similarity"] > 0.85
    shown = call(folder, ["links", "review"]).out
    assert "1. new.md may contradict old.md" in shown
    assert stored(folder, "SELECT key, content_hash, stability, confidence FROM memories ORDER BY key") == before
    assert stored(folder, "SELECT * FROM causal_edges") == []
    assert any("may contradict old.md" in hint for hint in calls(folder, ("memory_causal_link", {
        "sourceId": "cats.md", "targetId": "old.md", "relation": "supports"}), ("memory_causal_link", {
        "sourceId": "cats.md", "targetId": "new.md", "relation": "supports"}),
        ("memory_drift_why", {"memoryId": "old.md"}))[2]["hints"])  # fmt: skip

    assert call(folder, ["links", "review", "--dismiss", "1", "--json"]).json["contradictions"] == []
    assert call(folder, ["links", "review", "--dismiss", "7"]).status == 2
    (folder / "new.md").write_text(f"{NEW}\nSo it is.\n")
    assert call(folder, ["index", "."]).status == 0
    stored_by_hand(folder, "DELETE FROM job_runs")
    assert counts(call(folder, ["maintain", "--json"]))["contradictions"] == (
        "ran",
        2,
    )  # only what changed: cats.md declares a link
    assert len(call(folder, ["links", "review", "--json"]).json["contradictions"]) == 1
    assert call(folder, ["links", "add", "new.md", "supersedes", "old.md"]).status == 0
    assert call(folder, ["links", "review", "--json"]).json["contradictions"] == []


@pytest.mark.requirement("M11.gain", "M11.served", "M11.undo", "M11.job", "M7.doors")
def test_links_whose_ends_a_session_opened_grow_and_one_command_undoes_it(folder: Path) -> None:
    assert call(folder, ["links", "add", "old.md", "supports", "new.md", "--strength", "0.4"]).status == 0
    asked = {"query": "cache of answers in Redis", "limit": 2, "sessionId": "s", "enableDedup": False}
    calls(folder, ("memory_search", asked))
    assert counts(call(folder, ["maintain", "--dry-run", "--json"]))["consolidation"] == ("waiting", 0)
    calls(folder, ("memory_search", asked | {"includeContent": True}))
    assert counts(call(folder, ["maintain", "--dry-run", "--json"]))["consolidation"] == ("waiting", 1)
    assert counts(call(folder, ["maintain", "--json"]))["consolidation"] == ("ran", 1)
    [change] = call(folder, ["links", "history", "--by", "consolidation", "--json"]).json["changes"]
    assert (change["old"], change["new"]) == (0.4, 0.45)
    undone = call(folder, ["links", "undo", "--by", "consolidation", "--json"])
    assert (undone.status, len(undone.json["undone"])) == (0, 1)
    assert stored(folder, "SELECT strength, said FROM causal_edges") == [(0.4, None)]


@pytest.mark.requirement("M7")
def test_a_superseded_result_names_its_successor_that_was_not_found(folder: Path) -> None:
    assert call(folder, ["links", "add", "cats.md", "supersedes", "old.md"]).status == 0
    [row] = call(folder, ["search", "cache of answers lives in Redis", "--limit", "1", "--json"]).json["results"]
    assert row["key"] in ("old.md", "new.md")
    found = call(folder, ["search", "cache of answers lives in Redis", "--limit", "2", "--json"]).json["results"]
    [old] = [row for row in found if row["key"] == "old.md"]
    assert [successor["key"] for successor in old["notes"]["superseded_by"]] == ["cats.md"]
    assert "cats.md" not in [row["key"] for row in found]


def stored_by_hand(folder: Path, statement: str) -> None:
    with Memory.open(folder / "memory.db", root=folder, environ={}) as memory, memory.session.database.write() as txn:
        txn.connection.execute(statement)
