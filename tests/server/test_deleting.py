"""Memories that are deleted and brought back: over an MCP client on stdio, and by the console script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from files import write_file

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

A, B, RULE, OLD = "docs/del/a.md", "docs/del/deep/b.md", "rules/rule.md", "old/old.md"


@pytest.fixture
def filled(workspace: Path) -> Path:
    texts = {
        A: "---\ntrigger_phrases: [kangaroo pouch]\n---\n# A\n\nKangaroos have pouches.\n",
        B: "# B\n\nWombats dig burrows, unlike kangaroos.\n",
        RULE: "---\nimportance_tier: critical\n---\n# Rule\n\nNever feed the wombats.\n",
        OLD: "---\nimportance_tier: temporary\n---\n# Old\n\nEmus run past.\n",
    }
    for key, text in texts.items():
        write_file(workspace / key, text)
    assert call(workspace, ["index", "docs", "rules", "old"]).status == 0
    assert call(workspace, ["links", "add", A, "supports", RULE]).status == 0
    return workspace


def keys(root: Path) -> list[str]:
    [listed] = calls(root, ("memory_list", {"limit": 100}))
    return sorted(row["key"] for row in listed["data"]["memories"])


def supporters(root: Path, key: str) -> list[str]:
    return [link["source"] for link in call(root, ["lineage", key, "--json"]).json["links"]]


@pytest.mark.requirement("T9.undone", "T9.file")
def test_a_deleted_memory_goes_with_its_file_and_comes_back_as_it_was(filled: Path) -> None:
    text, modified = (filled / A).read_bytes(), (filled / A).stat().st_mtime_ns
    judged, preview, deleted, again, found = calls(
        filled,
        ("memory_validate", {"id": call(filled, ["show", A, "--json"]).json["id"], "wasUseful": True}),
        ("memory_delete", {"id": A, "dryRun": True}),
        ("memory_delete", {"id": A}),
        ("memory_delete", {"id": A}),
        ("memory_match_triggers", {"prompt": "the kangaroo pouch"}),
    )
    assert (preview["data"]["count"], preview["data"]["undo"]) == (1, None)
    assert (deleted["data"]["count"], deleted["data"]["files_moved"]) == (1, 1)
    assert again["error"]["code"] == "E080"
    assert found["data"]["total"] == 0
    assert not (filled / A).exists()
    assert supporters(filled, RULE) == []
    # the next index run finds nothing to bring back, and keeps what can be undone
    report = call(filled, ["index", "docs", "--json"]).json
    assert (report["created"], report["deleted"]) == ([], [])
    name = deleted["data"]["undo"]
    shown = call(filled, ["undelete", "--json"]).json["deletions"]
    assert [(one["name"], one["what"], one["memories"]) for one in shown] == [(name, A, 1)]

    undone, found, unknown = calls(
        filled,
        ("memory_delete", {"undo": name}),
        ("memory_match_triggers", {"prompt": "the kangaroo pouch"}),
        ("memory_delete", {"undo": name}),
    )
    assert (undone["data"]["memories"], len(undone["data"]["files"]), undone["data"]["pending"]) == ([A], 1, 0)
    [row] = found["data"]["results"]
    assert (row["key"], row["id"]) == (A, judged["data"]["id"])
    assert unknown["error"]["code"] == "E106"
    assert ((filled / A).read_bytes(), (filled / A).stat().st_mtime_ns) == (text, modified)
    assert supporters(filled, RULE) == [A]
    [again] = calls(filled, ("memory_validate", {"id": judged["data"]["id"], "wasUseful": True}))
    assert again["data"]["confidence"] > judged["data"]["confidence"]
    report = call(filled, ["index", "docs", "--json"]).json
    assert (report["created"], report["updated"], report["deleted"]) == ([], [], [])


@pytest.mark.requirement("T9.gates")
def test_folders_need_a_confirmation_a_checkpoint_and_no_protected_memory(filled: Path) -> None:
    before = keys(filled)
    refused, protected, single, root, absent, both, none = calls(
        filled,
        ("memory_delete", {"specFolder": "docs/del"}),
        ("memory_delete", {"specFolder": "rules", "confirm": True}),
        ("memory_delete", {"id": RULE}),
        ("memory_delete", {"specFolder": "/", "confirm": True}),
        ("memory_delete", {"specFolder": "absent", "confirm": True}),
        ("memory_delete", {"specFolder": "docs/del", "id": A, "confirm": True}),
        ("memory_delete", {}),
    )
    codes = [each["error"]["code"] for each in (refused, protected, single, root, absent, both, none)]
    assert codes == ["E105", "E107", "E105", "E030", "E080", "E031", "E031"]
    assert keys(filled) == before

    # where no checkpoint can be made nothing is deleted
    shelf = write_file(filled / "memory.db.checkpoints", "in the way")
    call(filled, ["delete", "--folder", "docs/del", "--confirm", "--json"]).refused("E062", 1)
    assert keys(filled) == before
    assert (filled / A).exists()
    shelf.unlink()

    ran = call(filled, ["delete", "--folder", "docs/del", "--confirm", "--json"])
    assert (ran.json["count"], ran.json["files_moved"]) == (2, 2)
    assert not (filled / A).exists()
    assert not (filled / B).exists()
    kept = call(filled, ["checkpoint", "list", "--json"]).json["checkpoints"]
    assert [one["name"] for one in kept] == [ran.json["checkpoint"]]
    assert ran.json["checkpoint"].startswith("pre-cleanup-")
    assert call(filled, ["undelete", ran.json["undo"]]).status == 0
    assert keys(filled) == before


@pytest.mark.requirement("T11.gates", "T11.parameters")
def test_a_tier_is_deleted_behind_its_gates(filled: Path) -> None:
    before = keys(filled)
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"tier": "temporary"}, "E105"),
        ({"tier": "critical", "confirm": True}, "E107"),
        ({"tier": "critical", "confirm": True, "specFolder": "rules", "skipCheckpoint": True}, "E107"),
        ({"tier": "golden", "confirm": True}, "E030"),
        ({"tier": "temporary", "confirm": "yes"}, "E030"),
        ({"tier": "temporary", "confirm": True, "olderThanDays": 0}, "E032"),
        ({"tier": "temporary", "confirm": True, "folder": "old"}, "E033"),
        ({"confirm": True}, "E031"),
    ]
    answers = calls(filled, *(("memory_bulk_delete", wish) for wish, _ in wishes))
    assert [answer["error"]["code"] for answer in answers] == [code for _, code in wishes]
    young, preview, elsewhere = calls(
        filled,
        ("memory_bulk_delete", {"tier": "temporary", "confirm": True, "olderThanDays": 1}),
        ("memory_bulk_delete", {"tier": "temporary", "dryRun": True}),
        ("memory_bulk_delete", {"tier": "temporary", "confirm": True, "specFolder": "docs"}),
    )
    assert (young["data"]["count"], elsewhere["data"]["count"]) == (0, 0)
    assert [row["key"] for row in preview["data"]["memories"]] == [OLD]
    assert keys(filled) == before

    gone, rules = calls(
        filled,
        ("memory_bulk_delete", {"tier": "temporary", "confirm": True, "skipCheckpoint": True}),
        ("memory_bulk_delete", {"tier": "critical", "confirm": True, "specFolder": "rules"}),
    )
    assert (gone["data"]["count"], gone["data"]["checkpoint"]) == (1, None)
    assert rules["data"]["checkpoint"].startswith("pre-bulk-delete-critical-")
    assert keys(filled) == [key for key in before if key not in (OLD, RULE)]
    for answer in (gone, rules):
        assert call(filled, ["undelete", answer["data"]["undo"]]).status == 0
    assert keys(filled) == before


@pytest.mark.requirement("T11.gates")
def test_nothing_of_a_tier_is_deleted_where_its_checkpoint_cannot_be_made(filled: Path) -> None:
    """Of every tier: of those that need no checkpoint too, unless it is left out."""
    before, files = keys(filled), sorted(filled.glob("**/*.md"))
    shelf = write_file(filled / "memory.db.checkpoints", "in the way")
    wishes = [
        {"tier": "temporary"},
        {"tier": "normal"},
        {"tier": "important"},
        {"tier": "critical", "specFolder": "rules"},
    ]
    previews = calls(filled, *(("memory_bulk_delete", {**wish, "dryRun": True}) for wish in wishes))
    answers = calls(filled, *(("memory_bulk_delete", {**wish, "confirm": True}) for wish in wishes))

    assert all(preview["data"]["count"] for preview in previews)
    assert [answer["error"]["code"] for answer in answers] == ["E062"] * len(wishes)
    assert (keys(filled), sorted(filled.glob("**/*.md"))) == (before, files)
    assert shelf.read_text() == "in the way"
    assert call(filled, ["undelete", "--json"]).json["deletions"] == []
    shelf.unlink()
    [gone] = calls(filled, ("memory_bulk_delete", {"tier": "normal", "confirm": True}))
    assert gone["data"]["count"] == previews[1]["data"]["count"]
    assert call(filled, ["undelete", gone["data"]["undo"]]).status == 0
    assert keys(filled) == before


@pytest.mark.requirement("T9.undone")
def test_undoing_writes_over_nothing_that_has_come_since(filled: Path) -> None:
    name = call(filled, ["delete", A, "--json"]).json["undo"]
    (filled / A).write_text("# Another\n\nNumbats eat termites.\n")
    call(filled, ["undelete", name, "--json"]).refused("E108")
    assert (filled / A).read_text().startswith("# Another")
    (filled / A).unlink()
    assert call(filled, ["undelete", name]).status == 0
    assert "Kangaroos" in (filled / A).read_text()


@pytest.mark.requirement("T9.file")
def test_a_file_that_cannot_be_moved_keeps_its_memory(filled: Path) -> None:
    outside = filled.parent / f"{filled.name}-outside"
    (filled / "docs/del").rename(outside)
    (filled / "docs/del").symlink_to(outside)
    call(filled, ["delete", A, "--json"]).refused("E014")
    assert (outside / "a.md").exists()
    assert call(filled, ["undelete", "--json"]).json["deletions"] == []
    assert A in keys(filled)


@pytest.mark.requirement("T9.undone")
def test_a_deletion_that_was_cut_off_is_undone_all_the_same(filled: Path) -> None:
    """As after a process that was killed once the file had moved, and before the rows were gone."""
    name = call(filled, ["delete", A, "--json"]).json["undo"]
    [leaf] = (filled / "memory.db.deleted").glob("*.json")
    kept = leaf.read_text(), (leaf.parent / json.loads(leaf.read_text())["file"]).read_bytes()
    assert call(filled, ["undelete", name]).status == 0
    leaf.write_text(kept[0])
    (leaf.parent / json.loads(kept[0])["file"]).write_bytes(kept[1])
    aside = leaf.parent / f".{name}.files" / A
    aside.parent.mkdir(parents=True)
    (filled / A).rename(aside)
    assert call(filled, ["undelete", name]).status == 0
    assert (filled / A).exists()
    assert A in keys(filled)


@pytest.mark.requirement("T9.file")
def test_a_file_of_the_same_name_in_another_workspace_stays(filled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_file(other / A, "# Mine\n\nNever indexed.\n")
    store = next(filled.rglob("memory.db"))
    call(other, ["delete", A, "--db", str(store), "--json"]).refused("E101", 1)
    assert (other / A).read_text() == "# Mine\n\nNever indexed.\n"
    assert A in keys(filled)
    assert call(filled, ["undelete", "--json"]).json["deletions"] == []


@pytest.mark.requirement("T9", "T11")
def test_a_memory_and_a_folder_are_not_deleted_at_once(filled: Path) -> None:
    refused = call(filled, ["delete", A, "--folder", "old"])
    assert (refused.status, "not both" in refused.err) == (2, True)


@pytest.mark.requirement("T9.file")
def test_folders_that_a_deletion_leaves_empty_go_and_come_back_with_their_files(filled: Path) -> None:
    (filled / "docs/del/kept.bin").write_bytes(b"something of yours")
    deleted = call(filled, ["delete", "--folder", "docs/del", "--confirm", "--json"]).ok()
    assert not (filled / "docs/del/deep").exists()
    assert (filled / "docs/del/kept.bin").exists()
    assert call(filled, ["undelete", deleted.json["undo"]]).status == 0
    assert (filled / B).exists()
    (filled / "docs/del/kept.bin").unlink()
    assert call(filled, ["delete", "--folder", "docs/del", "--confirm"]).status == 0
    assert (filled / "docs").exists()
    assert not (filled / "docs/del").exists()


@pytest.mark.requirement("T9.asked")
def test_who_asks_for_a_deleted_memory_is_told_when_it_went_and_what_brings_it_back(filled: Path) -> None:
    number = call(filled, ["show", A, "--json"]).json["id"]
    [deleted] = calls(filled, ("memory_delete", {"id": A}))
    name = deleted["data"]["undo"]
    asked = [
        ("memory_drift_why", {"memoryId": number}),
        ("memory_drift_why", {"memoryId": A}),
        ("memory_search", {"key": A}),
        ("memory_causal_link", {"sourceId": number, "targetId": RULE, "relation": "supports"}),
        ("memory_causal_link", {"sourceId": RULE, "targetId": A, "relation": "supports"}),
        ("memory_update", {"id": A, "title": "B"}),
        ("memory_validate", {"id": number, "wasUseful": True}),
        ("memory_delete", {"id": A}),
    ]
    for (tool, arguments), answer in zip(asked, calls(filled, *asked), strict=True):
        error = answer["error"]
        assert error["code"] == "E080", tool
        assert error["message"].startswith(f"{A} (id {number}) was deleted on 20"), (tool, arguments)
        assert error["actions"] == [f'memory_delete with undo="{name}"']
    ran = call(filled, ["lineage", A])
    assert f"try:  speckit-memory undelete {name}" in ran.err

    # something has come in its place
    (filled / A).write_text("# A\n\nAnother text.\n")
    assert call(filled, ["index", "docs", "--json"]).json["created"] == [A]
    [old, new] = calls(filled, ("memory_drift_why", {"memoryId": number}), ("memory_drift_why", {"memoryId": A}))
    assert old["error"]["actions"] == [f"ask for {A}, which was added since with the id {new['data']['id']}"]


@pytest.mark.requirement("T11.folder")
@pytest.mark.parametrize("folder", ["/", "//", ".", "./", " ", "\u00a0", "\t", "\\", "\\.\\", "/./"])
def test_a_folder_that_means_nothing_is_not_everything(filled: Path, folder: str) -> None:
    before = keys(filled)
    wanted = {"tier": "normal", "confirm": True, "specFolder": folder}
    refused, foreseen, whole = calls(
        filled,
        ("memory_bulk_delete", wanted),
        ("memory_bulk_delete", {**wanted, "dryRun": True}),
        ("memory_delete", {"specFolder": folder, "confirm": True}),
    )
    printed = [
        call(filled, ["delete", *more, "--folder", folder, "--confirm", "--json"])
        for more in ([], ["--tier", "normal"], ["--tier", "critical"])
    ]

    said = ("E030", "the folder to be deleted is the whole workspace")
    for error in (refused["error"], foreseen["error"], whole["error"], *(ran.json["error"] for ran in printed)):
        assert (error["code"], error["message"]) == said
    assert keys(filled) == before


@pytest.mark.requirement("T11.folder")
def test_an_empty_folder_at_the_command_line_is_one_that_was_meant_to_be_named(filled: Path) -> None:
    before = keys(filled)
    for more in ([], ["--tier", "normal"]):
        call(filled, ["delete", *more, "--folder", "", "--confirm", "--json"]).refused("E030")
    assert keys(filled) == before
