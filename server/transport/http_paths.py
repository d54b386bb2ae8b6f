"""The paths of the HTTP server: the health check for monitoring, and a path and a server for each workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, Router

from speckit_memory.server.transport.http_guard import App
from speckit_memory.server.transport.http_principals import PrincipalServers

HEALTH = "/health"
UNKEPT = {"Cache-Control": "no-store"}


async def health(_request: Request) -> JSONResponse:
    """Answers 200 to everybody, and says nothing about the store: restarting the server would not help a busy or
    damaged one. There is no status for shutting down, as the server accepts no new connections then."""
    return JSONResponse({"status": "ok"}, 200, UNKEPT)


def by_path(
    apps: Mapping[str, PrincipalServers], guards: Mapping[str, Callable[[App], App]], open_to_all: Sequence[Route] = ()
) -> Router:
    """Routes each request to the application of its path.

    Only authorized clients learn which paths exist: requests for other paths pass the guard of the first one.

    Args:
        apps: The applications by path.
        guards: Puts the guard of a path before an application.
        open_to_all: Routes that need no token, like the health check.
    """

    @asynccontextmanager
    async def running(_router: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as started:
            for app in apps.values():
                await started.enter_async_context(app.running())
            yield

    async def unknown(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        told = f"nothing is served at this path; paths served: {', '.join(apps)}\n"
        await PlainTextResponse(told, status_code=404)(scope, receive, send)

    served = [Route(path, guards[path](app)) for path, app in apps.items()]
    return Router(
        [Route(HEALTH, health), *open_to_all, *served],
        redirect_slashes=False,
        default=next(iter(guards.values()))(unknown),
        lifespan=running,
    )
