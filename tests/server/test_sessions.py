from __future__ import annotations

import re
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
def test_a_session_of_the_command_line_is_shown_a_line_for_what_it_was_shown(workspace: Path) -> None:
    def texts(*session: str) -> list[tuple[str, bool]]:
        ran = call(workspace, ["search", QUERY, "--limit", "2", "--json", *session])
        assert ran.status == 0, ran.err
        return [(row["key"], bool(row["snippet"])) for row in ran.json["results"]]

    first = texts("--session", "one")
    assert [shown for _, shown in first] == [True, True]
    assert texts("--session", "one") == [(key, False) for key, _ in first]
    assert texts("--session", "two") == texts() == first
    again = call(workspace, ["search", QUERY, "--limit", "2", "--session", "one"]).out
    assert all(f"already sent: {key}:" in again for key, _ in first)


@pytest.mark.requirement("A2", "T2")
@pytest.mark.parametrize("tool", [("memory_search", "query"), ("memory_context", "input")])
def test_a_second_search_names_the_places_that_were_sent_and_keeps_their_rows(
    workspace: Path, tool: tuple[str, str]
) -> None:
    name, text = tool
    asked = {text: QUERY, "limit": 2, "sessionId": "q"}
    first, second, again, more, other = answers(
        workspace, asked, asked, asked | {"enableDedup": False}, asked | {"limit": 3}, asked | {"sessionId": "r"},
        tool=name,
    )  # fmt: skip
    sent = [row["key"] for row in first["data"]["results"]]
    places = [f"{row['key']}:{row['lines'][0]}-{row['lines'][1]}" for row in first["data"]["results"]]
    assert len(sent) == 2
    assert second["summary"].startswith("2 memories found, 2 already sent")
    assert [row["key"] for row in second["data"]["results"]] == sent
    assert [row["notes"]["already_sent"] for row in second["data"]["results"]] == places
    assert not any("memory_text" in row for row in second["data"]["results"])
    hint = "memories already sent in this session are one line each; enableDedup=false sends them again"
    assert (hint in first["hints"], hint in second["hints"]) == (False, True)
    assert again["data"]["results"] == first["data"]["results"] == other["data"]["results"]
    assert [(row["key"], "memory_text" in row) for row in more["data"]["results"]][:2] == [(key, False) for key in sent]
    assert "memory_text" in more["data"]["results"][2]


@pytest.mark.requirement("A2", "T2")
def test_a_repeat_is_one_line_of_the_text(workspace: Path) -> None:
    async def ask() -> list[str]:
        async with connected(workspace) as client:
            asked = {"query": QUERY, "limit": 2, "sessionId": "q"}
            return [str((await client.call_tool("memory_search", asked)).content[0].text) for _ in range(2)]  # type: ignore[union-attr]  # all of it is text

    first, second = anyio.run(ask)
    place = re.search(r"^## 1\. (\S+:\d+-\d+)$", first, re.MULTILINE)
    assert place
    assert f"\n## 1. already sent: {place[1]}\n\n## 2. already sent: " in second
    assert ("found by" in first, "found by" in second, "\n>" in second) == (True, False, False)


@pytest.mark.requirement("A2", "A7")
def test_what_was_read_whole_is_a_line_afterwards_and_what_was_cut_is_not(workspace: Path) -> None:
    asked = {"query": QUERY, "limit": 1, "sessionId": "q"}
    [found] = answers(workspace, asked)[0]["data"]["results"]

    def sent_again(**read: Any) -> bool:
        session = {"sessionId": f"s{read.get('fromLine', '')}"}
        _, then = answers(workspace, {"key": found["key"], **session, **read}, asked | session)
        return "memory_text" in then["data"]["results"][0]

    assert (sent_again(fromLine=found["lines"][1]), sent_again()) == (True, False)
