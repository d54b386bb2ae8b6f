"""What an error tells to do next can be done where it is read: at the command line, or with the tools of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import TextContent

from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.server.console.fitting_actions import TOOL, for_client, for_console
from speckit_memory.server.mcp_server.app import tools
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.server.doors import call, with_client
from tests.server.test_mcp_stdio import calls

WAL = "docs/storage/wal.md"
LISTED = "list memories with `memory_list`"


def test_every_tool_is_known_by_its_name_and_the_console_has_steps_of_its_own() -> None:
    workspace = Workspace(lambda _create: pytest.fail("nothing is asked of the memory"), settings())
    for tool in tools(workspace, ThreadLimits()):
        assert TOOL.fullmatch(tool.name)
    for code in CODES:
        for problem in for_console(SpeckitError(code, "x")).problems:
            assert not TOOL.search(" ".join(problem.actions)), f"{code} sends the console to a tool"


def test_steps_that_cannot_be_taken_are_left_out_while_others_are_left() -> None:
    error = SpeckitError.of(
        [
            Problem("E080", "one", actions=("ask `memory_list`", "look")),
            Problem("E080", "two", actions=("ask `memory_list` or memory_search",)),
            Problem("E080", "three", actions=("ask memory_search", "ask `task_preflight`")),
        ]
    )
    told = [problem.actions for problem in for_client(error, lambda name: name == "memory_search").problems]
    assert told == [("look",), ("ask `memory_list` or memory_search",), ("ask memory_search",)]
    assert for_client(error, bool) is error
    assert [problem.message for problem in for_console(error).problems] == ["one", "two", "three"]


@pytest.mark.requirement("T24", "T26")
def test_a_profile_sends_nobody_to_a_tool_that_it_leaves_out(indexed: Path) -> None:
    async def work(client: Client) -> tuple[Any, Any, Any]:
        missing = await client.call_tool("memory_search", {"key": "docs/nope-at-all.md"})
        [remember] = (await client.get_prompt("remember", {})).messages
        assert isinstance(remember.content, TextContent)
        try:
            await client.read_resource("memory://docs/nope-at-all.md")
        except MCPError as error:
            return missing.structured_content, remember.content.text, error.error.data
        raise AssertionError("it was read")

    missing, prompt, resource = with_client(indexed, work, SPECKIT_PROFILE="core")
    assert missing["error"]["actions"] == ["search for its words, every result shows its key"]
    assert LISTED not in str(resource)
    assert "memory_causal_link" not in prompt
    assert "causalLinks: {supersedes: [KEY]}" in prompt
    missing, prompt, resource = with_client(indexed, work)
    assert LISTED in missing["error"]["actions"]
    assert LISTED in str(resource)
    assert "memory_causal_link with relation=supersedes" in prompt
    assert "causalLinks" not in prompt


def test_what_the_prompt_of_the_small_profile_says_makes_the_link(workspace: Path) -> None:
    content = f"---\ncausalLinks: {{supersedes: [{WAL}]}}\n---\n\n# Journal\n\nThe write-ahead log is gone.\n"
    [saved] = calls(workspace, ("memory_save", {"title": "Journal", "content": content}), SPECKIT_PROFILE="core")
    shown = call(workspace, ["lineage", saved["summary"].split(":")[0], "--json"]).json["links"]
    assert [(link["reading"], link["target"]) for link in shown] == [("supersedes", WAL)]


@pytest.mark.requirement("T26")
def test_the_console_is_told_its_own_commands(workspace: Path) -> None:
    missing = call(workspace, ["show", "docs/nope-at-all.md", "--json"]).json["error"]
    assert missing["actions"] == [
        "search for its words, every result shows its key",
        "list memories with `speckit-memory list`",
    ]

    unknown = call(workspace, ["learned", "undo", "999"])
    assert (unknown.status, "E080" in unknown.err) == (2, True)
    assert unknown.err.count("try:") == 1
    assert "try:  `speckit-memory learned judgements` lists them" in unknown.err
    assert call(workspace, ["validate", WAL, "--useful"]).status == 0
    assert call(workspace, ["learned", "undo", "1"]).status == 0
    again = call(workspace, ["learned", "undo", "1"]).ended(2)
    assert "judgement 1 was taken back before" in again.err
    assert "wrong type or form" not in again.err
    assert "correct the value" not in again.err
    assert "try:  `speckit-memory learned judgements` lists them" in again.err

    for command, step in (
        (["links", "remove", "99"], "speckit-memory lineage"),
        (["links", "undo", "99"], "speckit-memory links history"),
        (["links", "review", "--dismiss", "99"], "speckit-memory links review"),
        (["delete", "--folder", "nowhere"], "speckit-memory stats"),
        (["export", "out", "--folder", "nowhere"], "speckit-memory stats"),
        (["checkpoint", "create", "one", "--folder", "nowhere"], "speckit-memory stats"),
    ):
        refused = call(workspace, command)
        assert (refused.status, "E080" in refused.err) == (2, True), (command, refused.err)
        assert step in refused.err, command
        assert "search for its words" not in refused.err, command


def test_over_mcp_what_is_not_there_is_looked_for_where_it_would_be(indexed: Path) -> None:
    unlinked, deleted = calls(
        indexed, ("memory_causal_unlink", {"edgeId": 99}), ("memory_delete", {"specFolder": "nowhere", "dryRun": True})
    )
    assert unlinked["error"]["actions"][0] == "look with `memory_drift_why`"
    assert deleted["error"]["actions"][0] == "`memory_stats` names the folders"


@pytest.mark.requirement("T26", "M14")
def test_who_names_no_checkpoint_or_one_too_many_is_sent_to_what_is_at_hand(indexed: Path) -> None:
    _, unknown, again = calls(
        indexed,
        ("checkpoint_create", {"name": "before"}),
        ("checkpoint_restore", {"name": "after"}),
        ("checkpoint_create", {"name": "before"}),
    )
    assert unknown["error"]["actions"][0] == "list them with `checkpoint_list`"
    assert "delete that one first: `checkpoint_delete`" in again["error"]["actions"]

    for command, step in ((["restore", "after"], "checkpoint list"), (["create", "before"], "checkpoint delete NAME")):
        refused = call(indexed, ["checkpoint", *command])
        assert (refused.status, f"`speckit-memory {step}`" in refused.err) == (2, True), refused.err
        assert "checkpoint_" not in refused.err
