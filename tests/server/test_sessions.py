from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.server.doors import COMMAND, call, environment

QUERY = "why are ranks fused"


def answers(root: Path, *questions: dict[str, Any]) -> list[Any]:
    """What `memory_search` answers, over one connection."""

    async def ask() -> list[Any]:
        server = StdioServerParameters(command=str(COMMAND), args=["serve"], env=environment(root), cwd=root)
        async with Client(server) as client:
            return [(await client.call_tool("memory_search", asked)).structured_content for asked in questions]

    return anyio.run(ask)


@pytest.mark.requirement("A2")
def test_a_session_of_the_command_line_hides_what_it_was_shown_and_no_other_does(workspace: Path) -> None:
    def keys(*session: str) -> list[str]:
        ran = call(workspace, ["search", QUERY, "--limit", "2", "--json", *session])
        assert ran.status == 0, ran.err
        return [row["key"] for row in ran.json["results"]]

    first = keys("--session", "one")
    assert len(first) == 2
    assert not set(keys("--session", "one")) & set(first)
    assert keys("--session", "two") == keys() == first


@pytest.mark.requirement("A2")
def test_a_session_of_an_agent_hides_what_it_was_sent_and_no_other_does(workspace: Path) -> None:
    asked = [{"query": QUERY, "limit": 2, "sessionId": session} for session in ("one", "one", "two", "")]
    found = [[row["key"] for row in answer["data"]["results"]] for answer in answers(workspace, *asked)]
    first, again, other, none = found
    assert len(first) == 2
    assert not set(again) & set(first)
    assert other == none == first


@pytest.mark.requirement("A2", "T2")
def test_an_answer_says_how_many_were_left_out_as_already_sent(workspace: Path) -> None:
    first, second, *_, last = answers(
        workspace, *[{"query": QUERY, "limit": limit, "sessionId": "q"} for limit in (2, 2, 100, 100)]
    )
    assert not any("already sent" in hint for hint in first["hints"])
    assert "2 already sent in this session were left out" in second["hints"]
    assert last["data"]["count"] == 0
    [hint] = [hint for hint in last["hints"] if "already sent" in hint]
    assert hint.endswith(" already sent in this session were left out; search without sessionId to see them again")
    assert "index documents with memory_index_scan" not in last["hints"]


@pytest.mark.requirement("A2")
def test_a_reader_of_the_command_line_is_told_what_was_left_out(workspace: Path) -> None:
    asked = ["search", QUERY, "--limit", "2", "--session", "one"]
    assert "already sent" not in call(workspace, asked).out
    assert "2 memories already sent in this session left out" in call(workspace, asked).out
