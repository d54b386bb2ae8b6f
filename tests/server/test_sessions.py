from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.doors import call, connected

QUERY = "why are ranks fused"


def answers(root: Path, *questions: dict[str, Any], tool: str = "memory_search") -> list[Any]:
    """What a tool answers, over one connection."""

    async def ask() -> list[Any]:
        async with connected(root) as client:
            return [(await client.call_tool(tool, asked)).structured_content for asked in questions]

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
@pytest.mark.parametrize("tool", [("memory_search", "query"), ("memory_context", "input")])
def test_a_second_search_names_what_was_sent_and_fills_its_place_with_nothing(
    workspace: Path, tool: tuple[str, str]
) -> None:
    name, text = tool
    asked = {text: QUERY, "limit": 2, "sessionId": "q"}
    first, second, again, more = answers(
        workspace, asked, asked, asked | {"enableDedup": False}, asked | {"limit": 3}, tool=name
    )
    sent = [row["key"] for row in first["data"]["results"]]
    assert len(sent) == 2
    assert not any("already sent" in hint for hint in first["hints"])
    assert second["data"]["results"] == []
    assert second["summary"].startswith("0 new memories found, 2 already sent")
    hint = f"already sent in this session and left out: {', '.join(sent)}; ask with enableDedup=false to see them again"
    assert hint in second["hints"]
    assert "index documents with memory_index_scan" not in second["hints"]
    assert [row["key"] for row in again["data"]["results"]] == sent
    assert not any("already sent" in hint for hint in again["hints"])
    [further] = more["data"]["results"]
    assert further["key"] not in sent
    assert hint in more["hints"]


@pytest.mark.requirement("A2")
def test_a_reader_of_the_command_line_is_told_what_was_left_out(workspace: Path) -> None:
    asked = ["search", QUERY, "--limit", "2", "--session", "one"]
    assert "already sent" not in call(workspace, asked).out
    assert "2 memories already sent in this session left out" in call(workspace, asked).out
