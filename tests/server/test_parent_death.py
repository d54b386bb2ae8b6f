"""A server over stdio ends with the process that started it, though another process still holds its standard input."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from raw_server import INITIALIZE, PATIENCE

from speckit_memory.server.transport import stdio
from tests.server.doors import COMMAND, environment

PARENT = """
import os, signal, subprocess, sys
reading, writing, *command = sys.argv[1:]
sibling = [sys.executable, "-c", "import sys; sys.stdin.read()"]
subprocess.Popen(sibling, pass_fds=[int(writing)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.Popen(command, stdin=int(reading))
os.close(int(reading)), os.close(int(writing)), os.close(0), os.close(1), os.close(2)
signal.pause()
"""
"""Starts a process that holds the writing end of the server's standard input until its own has an end, and a server."""
ORPHAN = """
import os, sys
before = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == before:
    pass
from speckit_memory.server.transport import stdio
stdio.LOOK_SECONDS = 0.001
from speckit_memory.server.entry import main
sys.argv[:] = ["speckit-memory", "serve", "--no-warm-up"]
main()
"""
"""A server that looks all the time, and whose parent ended before it began."""


def line(source: int) -> dict[str, Any]:
    """The next line that somebody says."""
    said = b""
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([source], [], [], PATIENCE)
        assert ready, "nothing is said"
        byte = os.read(source, 1)
        assert byte, "it has ended"
        said += byte
    found: dict[str, Any] = json.loads(said)
    return found


def rest(source: int) -> bytes:
    """All that is still said: it ends when the last process that holds the other end does."""
    said = b""
    while True:
        ready, _, _ = select.select([source], [], [], PATIENCE)
        assert ready, "somebody still holds the pipe"
        part = os.read(source, 1 << 16)
        if not part:
            return said
        said += part


def asked(target: int, source: int, *messages: dict[str, Any]) -> dict[str, Any]:
    """The answer to the last of the messages."""
    os.write(target, b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    return line(source)


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@pytest.mark.requirement("T27.alone")
@pytest.mark.usefixtures("processes")
def test_a_server_ends_with_its_parent_though_a_sibling_holds_the_pipe(indexed: Path) -> None:
    with pipe() as (reading, writing):
        served = [str(COMMAND), "serve", "--no-warm-up"]
        with subprocess.Popen(
            [sys.executable, "-c", PARENT, str(reading), str(writing), *served],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[reading, writing],
            env=environment(indexed), cwd=indexed,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            answers, log = process.stdout.fileno(), process.stderr.fileno()
            assert "result" in asked(writing, answers, INITIALIZE)

            process.send_signal(signal.SIGKILL)
            assert process.wait(PATIENCE) == -signal.SIGKILL

            # the server alone holds both; the sibling, and this test, still hold its standard input
            assert rest(answers) == b""
            lines = [json.loads(each) for each in rest(log).splitlines()]
            assert [each["event"] for each in lines] == ["parent has ended", "stopped"]
            assert lines[-1]["status"] == 0
            process.stdin.close()  # and the sibling ends


@pytest.mark.usefixtures("processes")
def test_a_server_whose_parent_ended_before_it_began_serves(indexed: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(indexed), cwd=indexed,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        target, answers = process.stdin.fileno(), process.stdout.fileno()
        assert process.wait(PATIENCE) == 0  # the one that started it
        asked(target, answers, INITIALIZE)
        os.write(target, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        for number in range(50):
            assert asked(target, answers, {"jsonrpc": "2.0", "id": number, "method": "ping"})["id"] == number
        process.stdin.close()
        assert rest(answers) == b""


@pytest.mark.parametrize(("first", "looks"), [(7, [7, 7, 1]), (7, [1]), (1, []), (0, [])])
def test_it_is_looked_until_the_parent_is_another_one(
    monkeypatch: pytest.MonkeyPatch, first: int, looks: list[int]
) -> None:
    left = iter(looks)
    monkeypatch.setattr(os, "getppid", lambda: next(left))
    monkeypatch.setattr(stdio, "LOOK_SECONDS", 0)

    async def work() -> bool:
        with anyio.move_on_after(0 if not looks else PATIENCE) as given_up:
            await stdio.parent_gone(first)
        return given_up.cancelled_caught

    assert anyio.run(work) is (not looks)  # nobody looks, and that has no end
    assert list(left) == []
