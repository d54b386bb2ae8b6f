"""Documents that several calls change at once, through one server and through two that serve the same store."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.server.doors import call, connected

NOTES = [f"docs/notes/{number}.md" for number in range(6)]
Ask = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def noted(workspace: Path) -> Path:
    for key in NOTES:
        (workspace / key).parent.mkdir(parents=True, exist_ok=True)
        (workspace / key).write_text(f"# Note\n\nWombats dig the burrow {key}.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    return workspace


def with_two_servers(root: Path, work: Callable[[Ask, Ask], Awaitable[None]]) -> None:
    """Runs `work` with a caller for each of two servers."""

    def asking(client: Client) -> Ask:
        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            document = (await client.call_tool(tool, arguments)).structured_content
            assert isinstance(document, dict)
            return document

        return ask

    async def session() -> None:
        async with connected(root) as one, connected(root) as other:
            await work(asking(one), asking(other))

    anyio.run(session)


async def at_once(calls: Sequence[Callable[[], Awaitable[dict[str, Any]]]]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []

    async def one(made: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        answers.append(await made())

    async with anyio.create_task_group() as group:
        for made in calls:
            group.start_soon(one, made)
    return answers


@pytest.mark.requirement("T9.undone", "T9.file")
def test_two_servers_that_delete_the_same_memory_delete_it_once_and_one_undoing_brings_all_back(noted: Path) -> None:
    async def work(one: Ask, other: Ask) -> None:
        await one("memory_stats"), await other("memory_stats")
        for key in NOTES:
            answers = await at_once([partial(ask, "memory_delete", id=key) for ask in (one, other)])

            [refused] = [answer for answer in answers if "error" in answer]
            [done] = [answer for answer in answers if "error" not in answer]
            assert refused["error"]["code"] == "E080"
            assert (done["data"]["count"], done["data"]["files_moved"]) == (1, 1)
            assert done["data"]["undo"] in refused["error"]["actions"][0]

            undo = done["data"]["undo"]
            answers = await at_once([partial(ask, "memory_delete", undo=undo) for ask in (one, other)])

            [back] = [answer for answer in answers if "error" not in answer]
            assert sorted(answer["error"]["code"] for answer in answers if "error" in answer) == ["E106"]
            assert (len(back["data"]["memories"]), len(back["data"]["files"])) == (1, 1)
            assert (noted / key).exists()

    with_two_servers(noted, work)


@pytest.mark.requirement("T9", "T11")
def test_two_servers_that_delete_the_same_folder_delete_each_memory_once(noted: Path) -> None:
    async def work(one: Ask, other: Ask) -> None:
        await one("memory_stats"), await other("memory_stats")
        wanted: dict[str, Any] = {"specFolder": "docs/notes", "confirm": True}
        answers = await at_once([partial(ask, "memory_delete", **wanted) for ask in (one, other)])

        counts = [answer["data"].get("count", 0) for answer in answers]
        moved = [answer["data"].get("files_moved", 0) for answer in answers]
        assert (sorted(counts), sorted(moved)) == ([0, len(NOTES)], [0, len(NOTES)])

    with_two_servers(noted, work)


@pytest.mark.requirement("T4.edited")
def test_calls_that_edit_the_same_memory_at_once_wait_for_one_another_and_lose_nothing(noted: Path) -> None:
    key = NOTES[0]

    async def work(one: Ask, other: Ask) -> None:
        await one("memory_stats"), await other("memory_stats")
        answers = await at_once(
            [
                partial(ask, "memory_save", filePath=key, edit="append", content=f"line {number}")
                for number, ask in enumerate([one, one, one, other, other, other])
            ]
            + [
                partial(one, "memory_update", id=key, title="Burrows"),
                partial(other, "memory_update", id=key, triggerPhrases=["wombat burrow"]),
            ]
        )

        assert [answer["error"]["message"] for answer in answers if "error" in answer] == []
        text = (noted / key).read_text()
        assert sorted(re.findall(r"^line (\d)$", text, re.MULTILINE)) == list("012345")
        assert "title: Burrows" in text
        assert "wombat burrow" in text
        read = await other("memory_search", key=key)
        assert read["data"]["results"][0]["title"] == "Burrows"
        assert read["data"]["results"][0]["memory_text"].count("line ") == 6

    with_two_servers(noted, work)
    assert [file.name for file in noted.iterdir() if file.suffix == ".lock"] == []
