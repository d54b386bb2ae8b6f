"""Between the conformance suite, which knows HTTP alone, and the server over either transport.

Requests are passed on as `renaming` has them; answers and notifications as they are. Over stdio each client that shakes
hands has a server of its own, as each client of that transport has; all clients of the newer protocol, which has no
sessions, share one, so that ids are made distinct there and given back.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.conformance.renaming import renamed
from tests.conformance.workspace import command, environment

SESSION = "mcp-session-id"
NAME = "mcp-name"
VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LONGEST_LINE = 32 << 20
_OWN = {"host", "content-length", "connection", "transfer-encoding"}


@dataclass(slots=True)
class Asked:
    """A request under way: its own id, its token of progress, and what has been said for it; None ends that."""

    id: Any
    token: Any
    said: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)


class StdioServer:
    """A server over stdio, and who waits for which of its messages."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asked: dict[str, Asked] = {}
        self.unasked: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, root: Path) -> StdioServer:
        """A new one, over the workspace."""
        process = await asyncio.create_subprocess_exec(
            *command(), stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL, cwd=root,
            env=environment(root), limit=LONGEST_LINE,
        )  # fmt: skip
        return cls(process)

    async def write(self, message: Mapping[str, Any]) -> None:
        """Writes one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def notify(self, message: dict[str, Any]) -> None:
        """Passes on what wants no answer; what it cancels is named as the server knows it."""
        params = message.get("params") or {}
        if message.get("method") == "notifications/cancelled":
            known = next((key for key, asked in self._asked.items() if asked.id == params.get("requestId")), None)
            message = {**message, "params": {**params, "requestId": known}}
        await self.write(message)

    async def ask(self, message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """All that the server says for a request, its answer last. Who no longer listens has it cancelled."""
        key = uuid.uuid4().hex
        meta = (message.get("params") or {}).get("_meta") or {}
        asked = self._asked[key] = Asked(message["id"], meta.get("progressToken"))
        await self.write({**message, "id": key})
        try:
            while (said := await asked.said.get()) is not None:
                yield said
        finally:
            if self._asked.pop(key, None) is not None and self._process.returncode is None:
                await self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}})

    async def end(self) -> None:
        """Closes its standard input, at which it ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._route(json.loads(line))
        for asked in self._asked.values():
            asked.said.put_nowait(None)
        self.unasked.put_nowait(None)

    def _route(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            if asked := self._asked.pop(str(message.get("id")), None):
                asked.said.put_nowait({**message, "id": asked.id})
                asked.said.put_nowait(None)
            return
        params = message.get("params") or {}
        subscription = (params.get("_meta") or {}).get(SUBSCRIPTION)
        if subscription in self._asked:
            asked = self._asked[subscription]
            meta = {**params["_meta"], SUBSCRIPTION: asked.id}
            asked.said.put_nowait({**message, "params": {**params, "_meta": meta}})
            return
        token = params.get("progressToken")
        waiting = next((one for one in self._asked.values() if token is not None and one.token == token), None)
        (waiting.said if waiting else self.unasked).put_nowait(message)


class OverStdio:
    """HTTP for servers over stdio."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._servers: dict[str, StdioServer] = {}
        self._starting = asyncio.Lock()

    async def __call__(self, request: Request) -> Response:
        """Answers a request."""
        session = request.headers.get(SESSION, "")
        if request.method == "POST":
            return await self._post(renamed(await request.json()), session)
        if session not in self._servers:
            return Response(status_code=405 if not session else 404)
        server = self._servers[session]
        if request.method == "GET":
            return _stream(_until_none(server.unasked))
        await self._servers.pop(session).end()
        return Response(status_code=200)

    async def _post(self, message: dict[str, Any], session: str) -> Response:
        headers = {}
        if message.get("method") == "initialize":
            session = headers[SESSION] = uuid.uuid4().hex
            self._servers[session] = await StdioServer.start(self._root)
        if not session:
            # the first message of a connection decides for all of it: one without an envelope has its own
            session = str(((message.get("params") or {}).get("_meta") or {}).get(VERSION))
            async with self._starting:
                if session not in self._servers:
                    self._servers[session] = await StdioServer.start(self._root)
        server = self._servers.get(session)
        if server is None:
            return JSONResponse({"error": "no such session"}, status_code=404)
        if "id" not in message:
            await server.notify(message)
            return Response(status_code=202)
        return _stream(server.ask(message), headers)

    async def end(self) -> None:
        """Ends all servers."""
        for server in self._servers.values():
            await server.end()


class OverHttp:
    """HTTP for a server over HTTP: nothing but names is changed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx2.AsyncClient(timeout=None)

    async def __call__(self, request: Request) -> Response:
        """Passes a request on."""
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in _OWN}
        if request.method == "POST":
            message = renamed(json.loads(body))
            body = json.dumps(message).encode()
            if NAME in headers:
                params = message["params"]
                headers[NAME] = params.get("name") or params.get("uri")
        sent = self._client.build_request(request.method, self._url, headers=headers, content=body)
        answer = await self._client.send(sent, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name not in _OWN}

        async def passed_on() -> AsyncIterator[bytes]:
            try:
                async for part in answer.aiter_raw():
                    yield part
            finally:
                await answer.aclose()

        return StreamingResponse(passed_on(), answer.status_code, kept)

    async def end(self) -> None:
        """Closes its connections."""
        await self._client.aclose()


def _stream(messages: AsyncIterator[dict[str, Any]], headers: Mapping[str, str] | None = None) -> Response:
    async def events() -> AsyncIterator[str]:
        async for message in messages:
            yield f"event: message\ndata: {json.dumps(message)}\n\n"

    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")


async def _until_none(queue: asyncio.Queue[dict[str, Any] | None]) -> AsyncIterator[dict[str, Any]]:
    while (message := await queue.get()) is not None:
        yield message


@contextmanager
def bridged(to: str | Path) -> Iterator[str]:
    """The address of a bridge to the server at an address, or to servers over stdio in a workspace."""
    ready: list[uvicorn.Server] = []

    async def run() -> None:
        bridge = OverHttp(to) if isinstance(to, str) else OverStdio(to)
        app = Starlette(routes=[Route("/mcp", bridge.__call__, methods=["GET", "POST", "DELETE"])])
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        )
        ready.append(server)
        try:
            await server.serve()
        finally:
            await bridge.end()

    thread = Thread(target=asyncio.run, args=(run(),))
    thread.start()
    while thread.is_alive() and not (ready and ready[0].started):
        thread.join(0.05)
    port = ready[0].servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        ready[0].should_exit = True
        thread.join()
