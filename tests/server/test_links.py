"""Links, their history and lineages through the console script and an MCP client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

TONE, WAL, FUSION = "docs/tone.md", "docs/storage/wal.md", "docs/fusion.md"


@pytest.mark.requirement("M7.doors", "M7.history", "M7.undo")
def test_links_are_made_changed_removed_and_undone_from_the_console(workspace: Path) -> None:
    made = call(workspace, ["links", "add", TONE, "supersedes", WAL, "--strength", "0.4", "--evidence", "said so"])
    assert made.out.splitlines()[0] == f"link 1: {TONE} supersedes {WAL} (strength 0.4, by document): said so"
    assert "a clone has it" in made.out
    changed = call(workspace, ["links", "add", TONE, "supersedes", WAL, "--strength", "0.6", "--json"]).json["link"]
    assert (changed["id"], changed["strength"]) == (1, 0.6)
    assert call(workspace, ["links", "remove", "1", "--json"]).json["declared"] is None

    history = call(workspace, ["links", "history", WAL, "--json"]).json["changes"]
    assert [(change["id"], change["old"], change["new"], change["changed_by"]) for change in history] == [
        (3, 0.6, None, "manual"), (2, 0.4, 0.6, "manual"), (1, None, 0.4, "manual"),
    ]  # fmt: skip
    assert call(workspace, ["links", "history", FUSION]).out == "0 changes\n"
    assert "0.4 -> 0.6" in call(workspace, ["links", "history"]).out

    later = call(workspace, ["links", "undo", "1"]).ended(2)
    assert "E083: the link was changed again by change 3 after change 1" in later.err
    assert call(workspace, ["links", "undo", "3"]).status == 0
    back = call(workspace, ["lineage", TONE, "--json"]).json["links"][0]
    assert (back["strength"], back["evidence"]) == (0.6, "said so")
    assert "was undone by change 4" in call(workspace, ["links", "undo", "3"]).err

    undone = call(workspace, ["links", "undo", "--by", "manual", "--json"]).json
    assert ([change["id"] for change in undone["undone"]], undone["refused"]) == ([2, 1], [])
    assert call(workspace, ["lineage", TONE, "--json"]).json["links"] == []
    assert call(workspace, ["links", "undo"]).status == 2


@pytest.mark.requirement("M7.doors")
def test_what_links_do_not_take_is_refused_with_what_to_do(workspace: Path) -> None:
    (workspace / "docs/new.md").write_text(f"# New\n\ncausalLinks:\n  supersedes: [{WAL}]\n\nNo log.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    declared = call(workspace, ["links", "remove", "1"]).ended(2)
    assert "remove it from docs/new.md" in declared.err
    near = call(workspace, ["lineage", "wal.md"])
    assert (near.status, f"did you mean '{WAL}'?" in near.err) == (2, True)
    for arguments, code in (
        (["links", "add", TONE, "supports", TONE], "E030"),
        (["links", "add", TONE, "supports", WAL, "--strength", "1.5"], "E032"),
        (["links", "remove", "77"], "E080"),
        (["links", "undo", "77"], "E080"),
        (["lineage", TONE, "--depth", "11"], "E032"),
    ):
        refused = call(workspace, [*arguments, "--json"])
        assert (refused.status, refused.json["error"]["code"]) == (2, code), arguments


@pytest.mark.requirement("M8.lineage", "M8.mermaid", "M8.filter")
def test_the_console_tells_a_lineage_as_text_json_and_diagram(workspace: Path) -> None:
    for source, relation, target in (
        (FUSION, "caused", WAL), (WAL, "enabled", TONE), (TONE, "contradicts", FUSION), (TONE, "supersedes", WAL),
    ):  # fmt: skip
        assert call(workspace, ["links", "add", source, relation, target]).status == 0
    told = call(workspace, ["lineage", WAL]).out.splitlines()
    assert told[0] == f"{WAL}: 4 causal links within 3 hops"
    caused = f"caused by: {FUSION} caused {WAL} · strength 1 · hop 1 · link 1 · by document · caused: {WAL}"
    assert f"  {caused}" in told[1:-2]
    assert told[-2:] == [f"{TONE} contradicts {FUSION}: review which of them holds", f"{WAL} is superseded by {TONE}"]
    chosen = call(
        workspace, ["lineage", FUSION, "--relation", "caused", "--relation", "supersedes", "--depth", "1", "--json"]
    ).json
    assert chosen["groups"] == {"caused": 1}
    assert len(call(workspace, ["lineage", WAL, "--direction", "outgoing", "--json"]).json["links"]) == 4
    diagram = call(workspace, ["lineage", WAL, "--mermaid"]).out
    assert diagram.startswith("flowchart LR\n")
    assert diagram.count("-->") + diagram.count("-.->") == 4
    assert call(workspace, ["lineage", WAL, "--mermaid", "--json"]).status == 2


@pytest.mark.requirement("T18", "T19", "T20.counts", "T21", "M7.doors", "M8.lineage")
def test_an_agent_links_asks_why_counts_and_unlinks(workspace: Path) -> None:
    made, again, why, stats, gone, none, unknown = calls(
        workspace,
        ("memory_causal_link", {"sourceId": TONE, "targetId": WAL, "relation": "supersedes", "evidence": "said so"}),
        ("memory_causal_link", {"sourceId": WAL, "targetId": FUSION, "relation": "derived_from", "strength": 0.5}),
        ("memory_drift_why", {"memoryId": WAL, "maxDepth": 1}),
        ("memory_causal_stats", {}),
        ("memory_causal_unlink", {"edgeId": 1}),
        ("memory_drift_why", {"memoryId": TONE}),
        ("memory_causal_unlink", {"edgeId": 1}),
    )
    assert made["data"]["link"] == {
        "id": 1, "source": TONE, "relation": "supersedes", "target": WAL, "strength": 1.0, "evidence": "said so",
        "created_by": "document",
    }  # fmt: skip
    assert again["data"]["link"]["id"] == 2
    assert [(link["reading"], link["source"], link["edge"]) for link in why["data"]["links"]] == [
        ("superseded by", TONE, 1), ("derived from", WAL, 2),
    ]  # fmt: skip
    assert why["data"]["groups"] == {"derived from": 1, "superseded by": 1}
    assert why["hints"] == [f"{WAL} is superseded by {TONE}"]
    assert stats["data"]["by_relation"] == {"derived_from": 1, "supersedes": 1}
    assert stats["data"]["by_maker"] == {"document": 2}
    assert (stats["data"]["links"], stats["data"]["covered"], stats["data"]["memories"]) == (2, 3, 6)
    assert (stats["data"]["coverage"], stats["data"]["mean_strength"]) == (0.5, 0.75)
    assert "fewer than 60%" in stats["hints"][0]
    assert gone["data"]["removed"]["id"] == 1
    assert none["data"]["links"] == []
    assert unknown["error"]["code"] == "E080"
