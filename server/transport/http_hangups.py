"""Clients over HTTP that hang up before they have their answer: what they asked for is taken back.

Clients up to protocol 2025-11-25 may come back for an answer where a server keeps it. This one keeps none.
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
    """What is to be cancelled when the client of a request hangs up."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._happened = False

    def happened(self) -> None:
        self._happened = True
        for scope in self._scopes:
            scope.cancel()

    async def cancelling(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """What the work returns. Raises MCPError, which nobody receives, when the client hangs up before."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self._happened:
                scope.cancel()
            try:
                return await work()
            finally:
                self._scopes.discard(scope)
        raise MCPError(code=INTERNAL_ERROR, message="the client has hung up")


class HangUps:
    """Notices which requests of an application are hung up; `CancelHungUp` cancels their work."""

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
    """Middleware of a server that ends the handling of a request whose client hangs up, over HTTP."""

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Passes the request on."""
        hang_up = ctx.request.scope.get(_KEY) if ctx.request is not None else None
        if hang_up is None:
            return await call_next(ctx)
        return await hang_up.cancelling(lambda: call_next(ctx))
