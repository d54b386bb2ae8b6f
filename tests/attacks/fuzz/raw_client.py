"""A client of `speckit-memory serve` that writes lines and reads lines, so that nothing between mends an argument."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.server.doors import COMMAND, environment

PATIENCE_SECONDS = 120
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}


class RawClient:
    """One server process. Requests go one after the other."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [COMMAND, "serve"], cwd=root, env=environment(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._waiting = b""
        self._number = 0
        assert self.ask("initialize", INITIALIZE)["result"]["serverInfo"]["name"] == "speckit-memory"
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The structured content of a tool's answer, or the error that the protocol has for it."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return {"error": {"code": "E030", "message": answer["error"]["message"]}}
        result = answer["result"]
        content: dict[str, Any] = result["structuredContent"]
        assert bool(result.get("isError")) == ("error" in content)
        return content

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer: dict[str, Any] = json.loads(self._line())
            if answer.get("id") == self._number:
                return answer

    def kill(self) -> None:
        """Ends the process without warning."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # lone surrogates as escapes, which JSON allows
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._waiting:
                assert selector.select(PATIENCE_SECONDS), "the server does not answer"
                received = os.read(self._process.stdout.fileno(), 1 << 16)
                assert received, "the server has ended"
                self._waiting += received
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line
