"""What the answers of tools say of numbers, of what was done and of the next step, where that is easily wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client

from tests.server.doors import call, with_client
from tests.server.test_mcp_stdio import calls

WAL = "docs/storage/wal.md"


@pytest.mark.requirement("T9", "T11")
def test_a_deletion_counts_all_memories_however_many_the_answer_has_room_for(workspace: Path) -> None:
    (workspace / "notes").mkdir()
    for number in range(60):
        (workspace / f"notes/{number:03d}.md").write_text(f"# Note {number}\n\nWombats dig burrow {number}.\n")
    assert call(workspace, ["index", "notes"]).status == 0

    preview, deleted = calls(
        workspace,
        ("memory_delete", {"specFolder": "notes", "dryRun": True}),
        ("memory_delete", {"specFolder": "notes", "confirm": True}),
    )

    for told in (preview, deleted):
        named = len(told["data"]["memories"])
        assert told["data"]["count"] == 60
        assert named < 50
        assert f"{named} of 60 are listed" in told["hints"]
    assert deleted["data"]["files_moved"] == 60


@pytest.mark.requirement("T4", "T8", "T9.undone")
def test_what_was_not_changed_is_not_said_to_be(workspace: Path) -> None:
    checked, unchanged, deleted = calls(
        workspace,
        ("memory_save", {"filePath": WAL, "content": "And more.", "edit": "append", "dryRun": True}),
        ("memory_update", {"id": "docs/fusion.md", "title": "Why rank fusion"}),
        ("memory_delete", {"id": "docs/tone.md"}),
    )
    undo = deleted["data"]["undo"]
    refused, back = calls(
        workspace, ("memory_delete", {"undo": undo, "dryRun": True}), ("memory_delete", {"undo": undo})
    )

    assert checked["data"]["verdict"]["done"] == "its memory would be updated"
    assert unchanged["summary"] == "docs/fusion.md: nothing changed, it has these values already"
    assert (refused["error"]["code"], refused["error"]["actions"]) == ("E030", ["call again with 'undo' alone"])
    assert back["summary"] == "1 memory and 1 file are back"


@pytest.mark.requirement("T3", "M4")
def test_of_what_a_session_has_in_mind_what_was_triggered_is_counted_and_said_to_be_that(workspace: Path) -> None:
    async def work(client: Client) -> list[str]:
        texts = []
        await client.call_tool("memory_search", {"query": "why are ranks fused", "sessionId": "s"})
        for prompt in ("reciprocal rank fusion", "nothing of that"):
            [block] = (await client.call_tool("memory_match_triggers", {"prompt": prompt, "session_id": "s"})).content
            texts.append(block.text)  # type: ignore[union-attr]  # tools answer with text
        return texts

    one, none = with_client(workspace, work)

    assert one.startswith("# 1 memory triggered\n1 of them in the attention of session s\n")
    assert "in the mind" not in none


@pytest.mark.requirement("T12")
def test_a_page_behind_the_end_says_where_the_pages_are(indexed: Path) -> None:
    [behind, last] = calls(indexed, ("memory_list", {"offset": 99}), ("memory_list", {"offset": 5}))

    assert behind["hints"] == ["nothing at offset=99: the first memory is at offset=0, the last at offset=5"]
    assert (last["data"]["count"], last["hints"]) == (1, [])


@pytest.mark.requirement("T26")
@pytest.mark.parametrize(
    ("tool", "arguments", "step"),
    [
        ("checkpoint_restore", {"name": "none"}, "list them with `checkpoint_list`"),
        ("checkpoint_create", {"name": "kept"}, "delete that one first: `checkpoint_delete`"),
    ],
)
def test_errors_of_checkpoints_name_tools_to_who_has_tools(
    workspace: Path, tool: str, arguments: dict[str, str], step: str
) -> None:
    assert call(workspace, ["checkpoint", "create", "kept"]).status == 0

    [refused] = calls(workspace, (tool, arguments))

    assert step in refused["error"]["actions"]
