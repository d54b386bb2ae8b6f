"""The causal graph as a whole through the doors that people and agents use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

KEYS = [f"docs/n{n}.md" for n in range(6)]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Six notes with the same words, of which the first and the last are linked most."""
    (tmp_path / ".speckit").mkdir()
    (tmp_path / "docs").mkdir()
    links = {1: [0], 2: [0], 3: [0, 1], 4: [5, 0]}
    for n, key in enumerate(KEYS):
        named = ", ".join(KEYS[other] for other in links.get(n, ()))
        head = (
            f"---\ntitle: Note\ncausalLinks:\n  derived_from: [{named}]\n---\n" if named else "---\ntitle: Note\n---\n"
        )
        words = "Tenants share one gateway." if n != 5 else "Ledgers are kept apart."
        (tmp_path / key).write_text(f"{head}# Note\n\n{words}\n", encoding="utf-8")
    assert call(tmp_path, ["index", "docs"]).status == 0
    return tmp_path


def shown(root: Path, **environ: str) -> dict[str, float]:
    ran = call(root, ["search", "tenants gateway", "--json"], environ).ok()
    return {row["key"]: row["score"] for row in ran.json["results"]}


@pytest.mark.requirement("M9.bands", "M9.shown")
def test_density_is_told_by_stats_health_and_a_command(notes: Path) -> None:
    expected = {
        "edges_per_memory": 1.0, "band": "dense", "next_band": None, "missing_edges": 0,
        "edges": 6, "memories": 6, "connected_memories": 6,
    }  # fmt: skip
    stats, health = calls(notes, ("memory_stats", {}), ("memory_health", {}))
    assert stats["data"]["edge_density"] == expected
    [graph] = [check for check in health["data"]["checks"] if check["name"] == "graph"]
    assert graph["ok"]
    assert graph["detail"].startswith("1.00 causal edges per memory (dense)")
    ran = call(notes, ["graph", "show", "--json"])
    assert (ran.json["density"], ran.json["made_by"]) == (expected, {"document": 6})
    (notes / "docs" / "n6.md").write_text("# Another\n", encoding="utf-8")
    assert call(notes, ["index", "docs"]).status == 0
    assert "0.86 causal edges per memory (moderate), 1 more to dense" in call(notes, ["graph", "show"]).out


@pytest.mark.requirement("M10.pagerank", "M10.read")
def test_what_others_follow_from_gains_once_maintained_and_where_the_flag_is_on(notes: Path) -> None:
    plain = shown(notes)
    assert shown(notes, SPECKIT_GRAPH_SIGNALS="true").keys() == plain.keys()  # nothing is ranked yet
    assert call(notes, ["graph", "show", "--json"]).json["waiting"] == 6
    done = call(notes, ["maintain", "--json"]).json["jobs"]
    assert [(job["state"], job["count"]) for job in done if job["job"] == "ranks"] == [("ran", 6)]
    assert call(notes, ["graph", "show", "--json"]).json["ranked"] == 6
    lifted = shown(notes, SPECKIT_GRAPH_SIGNALS="true")
    assert shown(notes) == plain
    assert lifted != plain
    with Memory.open(notes / "memory.db", root=notes) as memory:
        ids = memory.session.view().attributes.in_folder("docs")
        ranks, greatest = memory.session.view().graph.ranks(ids)
        keys = memory.session.view().attributes.label("key", ids)
    assert (keys[ranks.argmax()], greatest) == (KEYS[0], ranks.max())


@pytest.mark.requirement("M10.communities", "M10.read")
def test_the_community_of_what_words_find_is_brought_in(notes: Path) -> None:
    def channels(**environ: str) -> dict[str, Any]:
        ran = call(notes, ["search", "gateway", "--json", "--limit", "20"], environ)
        return {row["key"]: row["channels"] for row in ran.json["results"]}

    assert call(notes, ["maintain"]).status == 0
    assert not any("trial_community" in by for by in channels().values())
    brought = [key for key, by in channels(SPECKIT_COMMUNITY_DETECTION="true").items() if "trial_community" in by]
    assert brought == [KEYS[5]]


@pytest.mark.requirement("M10.gate", "M10.fresh")
def test_ranks_go_when_the_graph_becomes_too_thin_and_follow_what_changed(notes: Path) -> None:
    with Memory.open(notes / "memory.db", root=notes) as memory:
        memory.lifecycle.maintain()
        first = memory.session.view().graph.ranks(memory.session.view().attributes.in_folder("docs"))
        memory.graph.add_edges([(KEYS[2], "derived_from", KEYS[5], 1.0)])
        again = {job.job: job.count for job in run_again(memory)}
        assert again["ranks"] > 0
        assert memory.graph.report().ranked == 6
        second = memory.session.view().graph.ranks(memory.session.view().attributes.in_folder("docs"))
        assert first[0].tolist() != second[0].tolist()
        for n in range(6, 9):
            (notes / "docs" / f"n{n}.md").write_text(f"# Another {n}\n", encoding="utf-8")
        memory.index(notes / "docs")
        assert memory.graph.report().waiting == 6
        run_again(memory)
        assert (memory.graph.report().ranked, memory.graph.report().waiting) == (0, 0)
        ids = memory.session.view().attributes.in_folder("docs")
        ranks, greatest = memory.session.view().graph.ranks(ids)
        assert (ranks.tolist(), greatest) == ([0.0] * len(ids), 0.0)


def run_again(memory: Memory) -> Any:
    """Runs the background work as if its time had come."""
    with memory.session.database.write() as txn:
        txn.connection.execute("DELETE FROM job_runs")
    return memory.lifecycle.maintain().jobs


@pytest.mark.requirement("M10.removed")
def test_edges_of_an_automatic_process_are_removed_by_one_command(notes: Path) -> None:
    with Memory.open(notes / "memory.db", root=notes) as memory:
        memory.graph.add_edges([(KEYS[2], "supports", KEYS[5], 0.4), (KEYS[1], "supports", KEYS[5], 0.4)], "entities")
    assert call(notes, ["graph", "show", "--json"]).json["made_by"] == {"document": 6, "entities": 2}
    assert (
        call(notes, ["graph", "remove", "--by", "entities", "--dry-run"]).out
        == "2 edges of 'entities' would be deleted\n"
    )
    assert call(notes, ["graph", "remove", "--by", "entities", "--json"]).json["edges"] == 2
    assert call(notes, ["graph", "show", "--json"]).json["made_by"] == {"document": 6}
    refused = call(notes, ["graph", "remove", "--by", "document"]).ended(2)
    assert "'document' is not an automatic process" in refused.err
    assert "no edge was made by 'entities'" in call(notes, ["graph", "remove", "--by", "entities"]).ended(2).err
