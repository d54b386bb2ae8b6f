"""Whether the server is there, for whoever watches it: without a token, and without a word about the store."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse

from speckit_memory.server.transport.http_guard import App

PATH = "/health"
METHODS = ("GET", "HEAD")
UNKEPT = {"Cache-Control": "no-store"}


class Health:
    """Answers at one path 200; all other requests go on.

    It asks nothing of a store: one that is busy or damaged makes no server that has to be started again. A server that
    has begun to end needs no word for that: it takes no connections, and calls under way have theirs.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on, or answers it."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] not in METHODS:
            allowed = {"Allow": ", ".join(METHODS)}
            await PlainTextResponse("Method Not Allowed", 405, allowed)(scope, receive, send)
        else:
            await JSONResponse({"status": "ok"}, 200, UNKEPT)(scope, receive, send)
