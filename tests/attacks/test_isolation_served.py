"""Isolation under an MCP server: it outlives what its extensions do, and nothing outlives it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolated.distributions import installed
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tally import Tally

from tests.attacks.isolated import STEPS, isolated, workspace
from tests.server.doors import COMMAND, environment

pytestmark = pytest.mark.usefixtures("processes")

QUESTION = "why are ranks fused"
REFUSED = "its process ended 5 times within 60 seconds and will not be restarted"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workspace(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("path"), "hostile_extension")


def with_client(
    root: Path, path: Path, work: Callable[[Client], Awaitable[None]], errors: Any = None, **more: str
) -> None:
    async def session() -> None:
        env = environment(root, **isolated(path, **{"SPECKIT_PIPELINE": str(root / "hostile.yaml"), **more}))
        # answers given again would ask no extension
        server = StdioServerParameters(command=str(COMMAND), args=["serve", "--cache-seconds", "0"], env=env, cwd=root)
        async with Client(stdio_client(server, errlog=errors or sys.stderr)) as client:
            await work(client)

    anyio.run(session)


def ids(answer: dict[str, Any]) -> list[int]:
    return [row["id"] for row in answer["data"]["results"]]


async def found(client: Client, question: str) -> dict[str, Any]:
    answer = await client.call_tool("memory_search", {"query": question, "limit": 5})
    assert not answer.is_error, answer.content
    document: dict[str, Any] = answer.structured_content
    return document


def test_a_server_outlives_what_its_extensions_do(root: Path, path: Path, tmp_path: Path, tally: Tally) -> None:
    """Four processes may end before the last question: the fifth start is the last of the minute."""

    async def work(client: Client) -> None:
        expected = ids(await found(client, QUESTION))
        for role, deed in [
            ("signal", "chatter"), ("annotator", "exit"), ("channel", "garble"), ("reranker", "quit"),
            ("understander", "close"), ("annotator", "multiply"), ("annotator", "hunt"), ("signal", "exit"),
        ]:  # fmt: skip
            await found(client, f"{QUESTION} zz-{role}-{deed}")
            answer = await found(client, QUESTION)
            assert ids(answer) == expected
            assert answer["meta"]["degraded"] == []
            tally.survived()
        await found(client, f"{QUESTION} zz-signal-exit")
        answer = await found(client, QUESTION)
        assert ids(answer) == expected
        reasons = {part["part"]: part["reason"] for part in answer["meta"]["degraded"]}
        assert set(reasons) == {f"hostile_{role}" for role in STEPS}
        assert all(
            "its process ended 5 times within 60 seconds and will not be restarted" in why for why in reasons.values()
        )
        health = await client.call_tool("memory_health", {})
        assert not health.is_error
        tally.survived()

    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as errors:
        with_client(root, path, work, errors)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert sum("an extension (process " in line.get("event", "") for line in lines) == 101


def test_six_searches_at_once_share_the_process(root: Path, path: Path, tally: Tally) -> None:
    async def work(client: Client) -> None:
        expected = ids(await found(client, QUESTION))

        async def one(question: str) -> None:
            answer = await found(client, question)
            assert question != QUESTION or ids(answer) == expected
            tally.tried()

        for _ in range(4):
            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(one, QUESTION if number else f"{QUESTION} zz-annotator-exit")
            assert (await found(client, QUESTION))["meta"]["degraded"] == []

    with_client(root, path, work, SPECKIT_DEADLINE_MS="0")


def nobody_holds(reader: int) -> bool:
    """Waits for the end of a pipe that nobody writes to: it comes when the last process that holds it has ended."""
    ready, _, _ = select.select([reader], [], [], PATIENCE_SECONDS)
    return bool(ready) and os.read(reader, 1) == b""


def piped(root: Path, pipe: Path) -> Path:
    """A pipeline whose annotator holds a named pipe open for as long as its process lives, or one that it forked."""
    os.mkfifo(pipe)
    file = pipe.with_suffix(".yaml")
    steps = f"[attribution, {{use: hostile_annotator, pipe: {pipe}}}]"
    file.write_text(f"extends: {root / 'hostile.yaml'}\nannotate: {steps}\n", encoding="utf-8")
    return file


def test_nothing_is_left_when_a_client_closes_the_server(root: Path, path: Path, tmp_path: Path, tally: Tally) -> None:
    file = piped(root, tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    async def work(client: Client) -> None:
        await found(client, f"{QUESTION} zz-annotator-multiply")

    with_client(root, path, work, SPECKIT_PIPELINE=str(file))
    assert nobody_holds(reader)
    os.close(reader)
    tally.survived(4)


def test_a_loop_ends_though_its_server_was_killed(root: Path, path: Path, tmp_path: Path, tally: Tally) -> None:
    file = piped(root, tmp_path / "pipe")
    arguments = ["search", f"{QUESTION} zz-annotator-loop", "--pipeline", str(file), "--deadline-ms", "3000"]
    server = subprocess.Popen([COMMAND, *arguments], env=environment(root, **isolated(path)), stdout=subprocess.PIPE)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY)  # waits until the component has opened the other end
    server.send_signal(signal.SIGKILL)
    server.communicate()
    assert nobody_holds(reader)
    os.close(reader)
    tally.survived()
