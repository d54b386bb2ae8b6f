"""Whether the server is there, for whoever watches it: without a token, and without a word about the store."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse

from speckit_memory.server.http_guard import App

PATH = "/health"
METHODS = ("GET", "HEAD")
UNKEPT = {"Cache-Control": "no-store"}


class Health:
    """Answers at one path 200, or 503 once the server has begun to end; all other requests go on.

    It asks nothing of a store: one that is busy or damaged makes no server that has to be started again.
    """

    def __init__(self, app: App, ending: Callable[[], bool]) -> None:
        self._app = app
        self._ending = ending

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on, or answers it."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] not in METHODS:
            allowed = {"Allow": ", ".join(METHODS)}
            await PlainTextResponse("Method Not Allowed", 405, allowed)(scope, receive, send)
        elif self._ending():
            await JSONResponse({"status": "ending"}, 503, UNKEPT)(scope, receive, send)
        else:
            await JSONResponse({"status": "ok"}, 200, UNKEPT)(scope, receive, send)
