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
    assert f"1 memory came back without a file, and the next index run deletes it again: {TEMPORARY}" in hint
    assert hint.endswith(f'; to bring the files back: memory_delete with undo="{gone["data"]["undo"]}"')

    [undo] = re.findall(r'memory_delete with undo="([^"]+)"', hint)
    undone, scanned, again = calls(
        workspace,
        ("memory_delete", {"undo": undo}),
        ("memory_index_scan", {"specFolder": "notes"}),
        ("checkpoint_restore", {"name": "one"}),
    )
    assert (undone["data"]["files"], scanned["data"]["deleted"]) == (1, 0)
    assert (again["data"]["without_file"], again["hints"], whole["hints"]) == (0, [], [])


@pytest.mark.requirement("M14", "T14")
def test_without_a_deletion_that_has_the_files_they_must_be_put_back(workspace: Path) -> None:
    (workspace / "notes").mkdir()
    for number in range(5):
        (workspace / f"notes/{number}.md").write_text(f"# Note {number}\n\nWombats dig burrow {number}.\n")
    assert call(workspace, ["index", "notes"]).status == 0
    calls(workspace, ("checkpoint_create", {"name": "one"}))
    for number in range(5):
        (workspace / f"notes/{number}.md").unlink()

    assert len(call(workspace, ["index", "notes", "--json"]).json["deleted"]) == 5

    shown = call(workspace, ["checkpoint", "restore", "one"])

    assert " ".join(shown.out.split()).endswith(
        "5 memories came back without a file, and the next index run deletes them again: "
        "notes/0.md, notes/1.md, notes/2.md and 2 more; put their files back before that"
    )
    assert call(workspace, ["index", "notes", "--json"]).json["deleted"] == [
        f"notes/{number}.md" for number in range(5)
    ]
    assert call(workspace, ["checkpoint", "restore", "one", "--json"]).json["without_file"] == 5
