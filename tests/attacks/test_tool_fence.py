"""Whatever is raised inside a call, the call is answered and the next one works."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hostile_component import SIGNAL, install
from mcp import MCPError
from raw_server import RawServer, raw_server
from tally import Tally

from speckit_memory.memory.models.embedders import counted_tokens
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.mcp_server.app import GuardMiddleware
from speckit_memory.server.replies.envelope import Reply

ACTS = [line.split('"')[1] for line in SIGNAL.splitlines() if line.startswith('    "') and '": ' in line]


@pytest.fixture(scope="module")
def hostile(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """One server with the hostile component, for all that it raises."""
    with raw_server(indexed, env=install(tmp_path_factory.mktemp("installed"))) as running:
        running.start()
        yield running
        assert running.close() == 0


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("tool", ["memory_search", "memory_context"])
@pytest.mark.usefixtures("processes")
def test_a_call_whose_component_raises_is_answered_and_the_next_one_works(
    hostile: RawServer, tally: Tally, tool: str, act: str
) -> None:
    name = "query" if tool == "memory_search" else "input"
    result = hostile.call(1, tool, {name: f"{act} fusion"})
    text = json.dumps(result)
    assert len(text) < 20_000
    assert "secret secret" not in text or act in ("Endless", "OurError")
    if result.get("isError"):
        assert result["structuredContent"]["error"]["code"] in ("E199", "E040")
    well = hostile.call(2, tool, {name: "fusion"})
    assert well["structuredContent"]["data"]["results"][0]["key"] == "docs/fusion.md"
    tally.survived()


@pytest.mark.parametrize("where", ["registering", "opening"])
@pytest.mark.usefixtures("processes")
def test_a_component_that_exits_while_the_store_is_opened_ends_no_server(
    indexed: Path, tmp_path: Path, tally: Tally, where: str
) -> None:
    env = {**install(tmp_path), "HOSTILE_AT": where}
    with raw_server(indexed, stderr=subprocess.PIPE, env=env) as running:
        running.start()
        assert running.process.stderr is not None
        event = json.loads(running.process.stderr.readline())["event"]
        assert event.startswith("the configuration cannot be used, the shipped pipeline answers: ")
        for number in range(1, 4):
            answer = running.call(number, "memory_search", {"query": "fusion"})
            assert answer["structuredContent"]["data"]["results"][0]["key"] == "docs/fusion.md"
            assert re.search(r"E116|E131", answer["content"][0]["text"])
            tally.survived()
        assert running.close() == 0


class UnspeakableError(BaseException):
    """Cannot even be described."""

    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


RAISED = [
    SystemExit(0),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopIteration(),
    MemoryError(),
    UnspeakableError(),
    BaseExceptionGroup("many", [SystemExit(1), ValueError("x")]),
    ValueError("secret " * 1_000_000),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("debug", ["", "1"])
def test_what_follows_a_reply_costs_no_answer(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, debug: str
) -> None:
    monkeypatch.setenv("SPECKIT_DEBUG", debug)

    def raise_it(_rows: object) -> None:
        raise error

    def memory_stats(fails: bool = False) -> Reply:
        """A tool."""
        if fails:
            raise error
        return Reply("done", {}, after=raise_it)

    async def run() -> list[Any]:
        limiter = anyio.CapacityLimiter(1)
        definition = SpeckitTool.defined(memory_stats, read_only=True)
        tool = definition.bound(memory_stats, budget=800, limiter=limiter, count=counted_tokens)
        return [await tool.run(arguments, None) for arguments in ({}, {"fails": True}, {})]

    first, failed, last = anyio.run(run)
    assert first.structured_content["summary"] == last.structured_content["summary"] == "done"
    assert failed.structured_content["error"]["code"] == "E199"
    assert "secret" not in failed.model_dump_json()
    assert len(capsys.readouterr().err) < 200_000
    tally.survived(2)


ON_THE_LOOP = [error for error in RAISED if not isinstance(error, asyncio.CancelledError)]


@pytest.mark.parametrize(
    "error",
    [*ON_THE_LOOP, MCPError(code=-32601, message="m" * 100_000, data="d" * 100_000)],
    ids=lambda error: type(error).__name__,
)
def test_a_handler_that_raises_is_an_error_of_the_protocol(tally: Tally, error: BaseException) -> None:
    class Context:
        method = "resources/list"

    async def handler(_context: object) -> object:
        raise error

    async def run() -> MCPError:
        with pytest.raises(MCPError) as raised:
            await GuardMiddleware()(Context(), handler)
        return raised.value

    told = anyio.run(run)
    assert len(told.error.model_dump_json()) < 5000
    tally.survived()


def test_a_cancelled_call_is_no_failure(tally: Tally) -> None:
    async def run() -> bool:
        with anyio.CancelScope() as scope:

            async def handler(_context: object) -> object:
                scope.cancel()
                await anyio.sleep_forever()
                return None

            await GuardMiddleware()(None, handler)
        return scope.cancelled_caught

    assert anyio.run(run)
    tally.survived()
