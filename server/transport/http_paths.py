"""The paths of the HTTP server: the health check for monitoring, and a path and a server for each workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.server.auth.provider import TokenVerifier
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, Router

HEALTH = "/health"
UNKEPT = {"Cache-Control": "no-store"}


async def health(_request: Request) -> JSONResponse:
    """Answers 200 to everybody, and says nothing about the store: restarting the server would not help a busy or
    damaged one. There is no status for shutting down, as the server accepts no new connections then."""
    return JSONResponse({"status": "ok"}, 200, UNKEPT)


def by_path(apps: Mapping[str, Starlette], verifier: TokenVerifier | None, *, default: Starlette | None) -> Router:
    """Routes each request to the application of its path, and those to other paths to the `default`.

    Without a default only authorized clients learn which paths exist; without a `verifier` all are authorized.
    """

    @asynccontextmanager
    async def running(_router: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as started:
            for app in apps.values():
                await started.enter_async_context(app.router.lifespan_context(app))
            yield

    async def may_ask(scope: MutableMapping[str, Any]) -> bool:
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return verifier is None or (kind.lower() == "bearer" and await verifier.verify_token(token) is not None)

    async def unknown(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if await may_ask(scope):
            told = f"nothing is served at this path; paths served: {', '.join(apps)}\n"
            await PlainTextResponse(told, status_code=404)(scope, receive, send)
            return
        # let an existing path refuse the request, so that unknown paths look the same without a token
        path, refusing = next(iter(apps.items()))
        await refusing({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    routes = [Route(HEALTH, health), *(Route(path, app) for path, app in apps.items())]
    return Router(routes, redirect_slashes=False, default=default or unknown, lifespan=running)
