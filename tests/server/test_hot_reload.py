"""A server follows the files of its configuration, over both transports, and survives every state of them."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio
import pytest
from mcp import Client
from raw_server import RawServer, raw_server

from speckit_memory.config.workspace.settings import CONFIG_FILE, FLAGS_FILE, PIPELINE_FILE
from tests.server.doors import call
from tests.server.test_mcp_http import serving

pytestmark = pytest.mark.usefixtures("processes")

OURS = "pipeline: ours\nextends: bm25\n"
THEIRS = "pipeline: theirs\nextends: rrf\n"


def write(root: Path, name: Path, text: str) -> Path:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return root / name


class Asked:
    """A server over stdio that is asked one question after another."""

    def __init__(self, server: RawServer) -> None:
        self.server = server
        self.number = 0
        server.start()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.number += 1
        return dict(self.server.call(self.number, tool, arguments)["structuredContent"])

    def search(self, tool: str = "memory_search") -> dict[str, Any]:
        found = self.call(tool, **{"query" if tool == "memory_search" else "input": "why rank fusion"})
        assert found["data"]["results"]
        return found

    def health(self, name: str) -> dict[str, Any]:
        checks = self.call("memory_health")["data"]["checks"]
        return next(check for check in checks if check["name"] == name)


@pytest.mark.requirement("P2.followed", "P11")
def test_a_flag_that_a_command_changes_is_in_force_in_a_server_when_the_command_says_so(workspace: Path) -> None:
    name = "SPECKIT_RSF_FUSION"
    write(workspace, FLAGS_FILE, f"flags: {{{name}: {{state: permanent, was: enabled}}}}\n")
    with raw_server(workspace, "--no-warm-up") as server:
        asked = Asked(server)
        asked.search()
        before = asked.health("pipeline")["detail"]
        for _ in ("enabled", "shadow"):
            told = call(workspace, ["flags", "demote", name]).out
        assert "A running server uses the new state from its next search on" in told
        asked.search()
        after = asked.health("pipeline")["detail"]
    assert before.split(":")[0] != after.split(":")[0]
    assert "applied without a restart once" in after


@pytest.mark.requirement("P2.followed", "P2.last_good", "T7")
def test_a_server_over_stdio_answers_as_the_files_say_and_goes_on_with_the_last_good_ones(workspace: Path) -> None:
    with TemporaryFile() as errors, raw_server(workspace, "--no-warm-up", stderr=errors) as server:
        asked = Asked(server)
        assert asked.search()["hints"] == []
        told = asked.health("pipeline")
        assert told["ok"] and told["detail"].endswith(": the shipped default")

        file = write(workspace, PIPELINE_FILE, OURS)
        assert asked.search()["hints"] == []
        assert asked.health("pipeline")["detail"].startswith("'ours' (")
        assert "applied without a restart once, last at " in asked.health("pipeline")["detail"]

        write(workspace, PIPELINE_FILE, "fusoin: []\n")
        for tool in ("memory_search", "memory_context"):
            [hint] = [hint for hint in asked.search(tool)["hints"] if "configuration" in hint]
            assert hint.startswith(f"the configuration was changed and cannot be used: {file}:1:1: E115 ")
            assert "'ours' (" in hint
        broken = asked.health("pipeline")
        assert not broken["ok"]
        assert f"the files were changed and cannot be used: {file}:1:1: E115 " in broken["detail"]
        assert broken["hint"].endswith("uses them without a restart.")
        errors.seek(0)
        events = [json.loads(line) for line in errors.read().splitlines()]
    hashes = {event["pipeline"]: event["hash"] for event in events if event["event"] == "search"}
    assert list(hashes) == ["default", "ours"]
    assert f"the configuration was read again: 'ours' ({hashes['ours']})" in [event["event"] for event in events]

    write(workspace, PIPELINE_FILE, OURS)
    with raw_server(workspace, "--no-warm-up") as server:
        asked = Asked(server)
        assert asked.health("pipeline")["detail"].startswith(f"'ours' ({hashes['ours']}): {file}")
        write(workspace, FLAGS_FILE, "flags: {SPECKIT_NOBODY: {state: enabled}}\n")
        assert "flags.yaml:1:9: E120" in str(asked.search()["hints"])
        (workspace / FLAGS_FILE).unlink()
        write(workspace, CONFIG_FILE, "deadline_ms: [\n")
        assert "config.yaml:2:1: E111" in str(asked.search()["hints"])
        (workspace / CONFIG_FILE).unlink()
        assert asked.search()["hints"] == []
        assert server.close() == 0


@pytest.mark.requirement("P2.followed")
def test_clients_over_http_get_whole_answers_of_one_pipeline_or_another_while_files_change(workspace: Path) -> None:
    write(workspace, PIPELINE_FILE, OURS)
    over = threading.Event()
    seen: list[str] = []

    async def ask(url: str, explain: bool) -> None:
        async with Client(url) as client:
            while not over.is_set():
                result = await client.call_tool("memory_search", {"query": "why rank fusion", "explain": explain})
                content = result.structured_content
                assert content is not None and not result.is_error, content
                assert content["hints"] == []
                seen.append("ours" if set(content["data"]["results"][0]["channels"]) == {"bm25"} else "theirs")

    async def edit() -> None:
        for text, name in [(THEIRS, "theirs"), (OURS, "ours")] * 4:
            write(workspace, PIPELINE_FILE, text)
            while set(seen[-6:]) != {name}:  # answers that were under way may come after the first of the new pipeline
                await anyio.sleep(0.01)
        over.set()

    async def all_of_them(url: str) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(ask, url, True)
            group.start_soon(edit)

    with serving(workspace) as url:
        anyio.run(all_of_them, url)
    assert sum(one != other for one, other in pairwise(seen)) >= 7
