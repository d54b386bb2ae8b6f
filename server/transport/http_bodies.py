"""Limits how many long request bodies are read at once over HTTP, which bounds the memory they take."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import anyio

from speckit_memory.server.transport.http_guard import App

LONG = 64 << 10
"""Bytes from which a body is long; a body of undeclared length is long, too."""
MOST_LONG = 16
"""Long bodies at once, from the first byte read to the end of the answer. The SDK refuses bodies above 4 MiB."""


class LongBodies:
    """Reads at most `most` long bodies at once; further ones wait unread and time out if their turn does not come.

    Short bodies are not limited, so that slow senders of long ones do not block other clients.
    """

    def __init__(self, app: App, most: int = MOST_LONG) -> None:
        self._app = app
        self._turns = anyio.CapacityLimiter(most)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on; a long body is read when its turn comes."""
        if scope["type"] != "http" or not _may_be_long(scope):
            await self._app(scope, receive, send)
            return
        request, has_turn = object(), False

        async def in_turn() -> Any:
            nonlocal has_turn
            if not has_turn:
                # on behalf of the request: `receive` may be called from another task than the one that releases
                await self._turns.acquire_on_behalf_of(request)
                has_turn = True
            return await receive()

        try:
            await self._app(scope, in_turn, send)
        finally:
            if has_turn:
                self._turns.release_on_behalf_of(request)


def _may_be_long(scope: MutableMapping[str, Any]) -> bool:
    told = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    if told:
        # compare the number of digits first: int() of a huge header would be slow
        return len(told[0]) > len(str(LONG)) or not told[0].isdigit() or int(told[0]) > LONG
    return any(name.lower() == b"transfer-encoding" for name, _ in scope["headers"])
