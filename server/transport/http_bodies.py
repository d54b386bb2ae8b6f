"""How many long requests arrive at once over HTTP: what all of them hold of memory has a bound, whoever sends them."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import anyio

from speckit_memory.server.transport.http_guard import App

LONG = 64 << 10
"""Bytes of a body; one whose length is not told counts as long."""
MOST_LONG = 16
"""At once, from the first byte that is read to the end of the answer. The SDK refuses bodies of more than 4 MiB."""


class LongBodies:
    """Reads so many long bodies at once; further ones wait unread, and end with their time when it never is their turn.

    Short ones pass, so that whoever sends long ones slowly keeps nobody from asking.
    """

    def __init__(self, app: App, most: int = MOST_LONG) -> None:
        self._app = app
        self._turns = anyio.CapacityLimiter(most)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on; its body is read when it is its turn."""
        if scope["type"] != "http" or not _may_be_long(scope):
            await self._app(scope, receive, send)
            return
        request, has_turn = object(), False

        async def in_turn() -> Any:
            nonlocal has_turn
            if not has_turn:
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
        return len(told[0]) > len(str(LONG)) or not told[0].isdigit() or int(told[0]) > LONG
    return any(name.lower() == b"transfer-encoding" for name, _ in scope["headers"])
