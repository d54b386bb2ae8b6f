from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.server.doors import COMMAND, call, environment

QUERY = "why are ranks fused"


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
    async def searches(*sessions: str) -> list[list[str]]:
        server = StdioServerParameters(command=str(COMMAND), args=["serve"], env=environment(workspace), cwd=workspace)
        async with Client(server) as client:
            answers: list[Any] = [
                await client.call_tool("memory_search", {"query": QUERY, "limit": 2, "sessionId": session})
                for session in sessions
            ]
        return [[row["key"] for row in answer.structured_content["data"]["results"]] for answer in answers]

    first, again, other, none = anyio.run(searches, "one", "one", "two", "")
    assert len(first) == 2
    assert not set(again) & set(first)
    assert other == none == first
