"""The health check for monitoring: needs no token and says nothing about the store."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse

from speckit_memory.server.transport.http_guard import App

PATH = "/health"
METHODS = ("GET", "HEAD")
UNKEPT = {"Cache-Control": "no-store"}


class Health:
    """Answers 200 at one path and passes all other requests on.

    It does not check the store: restarting the server would not help a busy or damaged one. There is no status for
    shutting down, as the server accepts no new connections then.
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
