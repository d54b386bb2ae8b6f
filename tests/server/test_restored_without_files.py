"""Memories that a checkpoint brings back and whose files a deletion has moved aside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

TEMPORARY = "notes/temporary.md"


@pytest.mark.requirement("M14", "T14")
def test_who_restores_memories_without_their_files_is_told_and_the_step_that_is_named_keeps_them(
    workspace: Path,
) -> None:
    (workspace / "notes").mkdir()
    (workspace / TEMPORARY).write_text("---\nimportance_tier: temporary\n---\n# Temporary\n\nEmus run past.\n")
    (workspace / "notes/kept.md").write_text("# Kept\n\nWombats dig burrows.\n")
    assert call(workspace, ["index", "notes"]).status == 0
    whole, _, gone = calls(
        workspace,
        ("checkpoint_create", {"name": "one"}),
        ("checkpoint_restore", {"name": "one"}),
        ("memory_bulk_delete", {"tier": "temporary", "confirm": True}),
    )
    [restored] = calls(workspace, ("checkpoint_restore", {"name": "one"}))

    [hint] = restored["hints"]
    assert (restored["data"]["returned"], restored["data"]["without_file"]) == (1, 1)
    assert f"index runs keep the restored memories until a file changes: 1 memory has no file: {TEMPORARY}" in hint
    assert f' (to bring the files back: memory_delete with undo="{gone["data"]["undo"]}")' in hint

    [undo] = re.findall(r'memory_delete with undo="([^"]+)"', hint)
    undone, scanned, again = calls(
        workspace,
        ("memory_delete", {"undo": undo}),
        ("memory_index_scan", {"specFolder": "notes"}),
        ("checkpoint_restore", {"name": "one"}),
    )
    assert (len(undone["data"]["files"]), scanned["data"]["absent"]) == (1, 0)
    assert (again["data"]["without_file"], again["hints"], whole["hints"]) == (0, [], [])


@pytest.mark.requirement("M14", "M14.holds", "T14")
def test_memories_that_come_back_without_files_stay_until_there_are_files_again(workspace: Path) -> None:
    (workspace / "notes").mkdir()
    for number in range(5):
        (workspace / f"notes/{number}.md").write_text(f"# Note {number}\n\nWombats dig burrow {number}.\n")
    assert call(workspace, ["index", "notes"]).status == 0
    calls(workspace, ("checkpoint_create", {"name": "one"}))
    for number in range(5):
        (workspace / f"notes/{number}.md").unlink()

    assert len(call(workspace, ["index", "notes", "--json"]).json["vanished"]) == 5

    shown = call(workspace, ["checkpoint", "restore", "one"])

    assert (
        "no file was touched, and index runs keep the restored memories until a file changes: 5 memories have no file: "
        "notes/0.md, notes/1.md, notes/2.md and 2 more; `save FILE` takes the text of a file"
    ) in " ".join(shown.out.split())
    assert call(workspace, ["index", "notes", "--json"]).json["absent"] == []
    assert call(workspace, ["list", "--folder", "notes", "--json"]).json["total"] == 5
    assert call(workspace, ["checkpoint", "restore", "one", "--json"]).json["without_file"] == 5

    (workspace / "notes/0.md").write_text("# Note 0\n\nEmus run past.\n")
    assert call(workspace, ["index", "notes", "--json"]).json["updated"] == ["notes/0.md"]
    (workspace / "notes/0.md").unlink()
    assert call(workspace, ["index", "notes", "--json"]).json["absent"] == ["notes/0.md"]
