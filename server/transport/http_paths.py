"""Serves several workspaces at one address, each with a separate path and server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from typing import Any

from mcp.server.auth.provider import TokenVerifier
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from speckit_memory.server.transport.http_guard import App


class ByPath:
    """Routes each request to the application of its path.

    Only authorized clients learn which paths exist.
    """

    def __init__(self, apps: Mapping[str, Starlette], verifier: TokenVerifier | None) -> None:
        """`apps` are keyed by path; without a `verifier` all clients are authorized."""
        self._apps = apps
        self._verifier = verifier

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Routes a request, or runs the lifespan of all applications."""
        if scope["type"] == "lifespan":
            await _lived(self._apps.values(), receive, send)
            return
        app: App | None = self._apps.get(scope["path"])
        if app is not None:
            await app(scope, receive, send)
        elif await self._may_ask(scope):
            told = f"nothing is served at this path; paths served: {', '.join(self._apps)}\n"
            await PlainTextResponse(told, status_code=404)(scope, receive, send)
        else:
            # let an existing path refuse the request, so that unknown paths look the same without a token
            path, refusing = next(iter(self._apps.items()))
            await refusing({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    async def _may_ask(self, scope: MutableMapping[str, Any]) -> bool:
        if self._verifier is None:
            return True
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and await self._verifier.verify_token(token) is not None


async def _lived(apps: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Starts all applications, and stops them with the server."""
    await receive()
    async with AsyncExitStack() as running:
        for app in apps:
            await running.enter_async_context(app.router.lifespan_context(app))
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
