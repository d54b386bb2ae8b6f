"""Cancels requests over HTTP whose client disconnects before the answer.

Clients up to protocol 2025-11-25 may come back for an answer if the server keeps it. This server keeps none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from speckit_memory.server.transport.http_guard import App

_KEY = "speckit_memory.hang_up"


class _HangUp:
    """The work to cancel when the client of a request disconnects."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._happened = False

    def happened(self) -> None:
        self._happened = True
        for scope in self._scopes:
            scope.cancel()

    async def cancelling(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Returns the result of the work. Raises MCPError, which is not sent, if the client disconnects first."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            # the client may disconnect before the work starts
            if self._happened:
                scope.cancel()
            try:
                return await work()
            finally:
                self._scopes.discard(scope)
        raise MCPError(code=INTERNAL_ERROR, message="the client has hung up")


class HangUps:
    """Detects disconnected requests of an application; `CancelHungUp` cancels their work."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        hang_up = _HangUp()

        async def watched() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect":
                hang_up.happened()
            return message

        await self._app({**scope, _KEY: hang_up}, watched, send)


class CancelHungUp:
    """Middleware that cancels the handling of a request whose HTTP client disconnects."""

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Passes the request on."""
        hang_up = ctx.request.scope.get(_KEY) if ctx.request is not None else None
        if hang_up is None:
            return await call_next(ctx)
        return await hang_up.cancelling(lambda: call_next(ctx))
