"""The server over stdio without the SDK's client: bytes in, lines out, whatever the bytes are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from tests.server.doors import environment, server_command

PATIENCE = 120
"""Seconds after which a test gives up; nothing takes nearly as long."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class RawServer:
    """A running server and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], *, listen: bool = True) -> None:
        self.process = process
        self.said: Queue[dict[str, Any] | None] = Queue()
        if listen:
            self.listen()

    def listen(self) -> None:
        """Begins to read standard output."""
        Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put(None)

    def send(self, *messages: object) -> None:
        """Writes messages, one a line; bytes as they are, without a line end."""
        assert self.process.stdin is not None
        for message in messages:
            raw = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(raw)
        self.process.stdin.flush()

    def next(self, *, unasked: bool = False) -> dict[str, Any]:
        """The next message of the server; what it says `unasked`, such as that memories have changed, if wanted."""
        while True:
            message = self.said.get(timeout=PATIENCE)
            assert message is not None, "the server has gone"
            if unasked or "method" not in message:
                return message

    def answer(self, request_id: object) -> dict[str, Any]:
        """The answer to a request; what is said before it is dropped."""
        while (message := self.next()).get("id") != request_id:
            pass
        return message

    def start(self) -> None:
        """Shakes hands."""
        self.send(INITIALIZE, INITIALIZED)
        assert "result" in self.answer(0)

    def call(self, request_id: int | str, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a call of a tool."""
        self.send(call_of(request_id, tool, arguments))
        answer = self.answer(request_id)
        assert "result" in answer, answer
        return dict(answer["result"])

    def rest(self) -> list[dict[str, Any]]:
        """All that it still says until its standard output ends."""
        return list(iter(lambda: self.said.get(timeout=PATIENCE), None))

    def close(self) -> int:
        """Ends standard input; returns the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def call_of(request_id: int | str, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The request that calls a tool."""
    params = {"name": tool, "arguments": dict(arguments or {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@contextmanager
def raw_server(
    root: Path,
    *arguments: str,
    listen: bool = True,
    stderr: Any = subprocess.DEVNULL,
    spawned: bool = False,
    **more: Any,
) -> Iterator[RawServer]:
    """A server over stdio, killed at the end of the block unless it has ended; `env` adds to its environment.

    The process is that of the console script if it is `spawned`; else one that stands for it, whose id is another.
    """
    env = environment(root, **more.pop("env", {}))
    command = server_command(env, *arguments, spawned=spawned)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd=root, **more
    ) as process:
        try:
            yield RawServer(process, listen=listen)
        finally:
            process.kill()


def full_pipe() -> tuple[int, int]:
    """A pipe that is full, and that nobody reads: its two ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    return reading, writing
