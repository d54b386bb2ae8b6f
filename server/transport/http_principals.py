"""Passes each request to the server of its principal: nothing that one holds can reach another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.responses import JSONResponse

from speckit_memory.errors import SpeckitError
from speckit_memory.server.workspace.idle_workspaces import close_unused

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from speckit_memory.server.workspace.workspace import Workspace

MOST_PRINCIPALS = 32
"""Principals of a workspace whose stores are open at once: each has its connections and caches."""
SERVERS_OWN = ""
"""The principal of requests without a token or with the only one: the one that the server was started with."""


@dataclass(eq=False, slots=True)
class PrincipalServer:
    """The MCP server of one principal, with its sessions, subscriptions and open store."""

    workspace: Workspace
    app: Starlette
    ending: anyio.Event = field(default_factory=anyio.Event)
    requests: int = 0
    """Requests in progress, streams included."""


class PrincipalServers:
    """The servers of the principals of one workspace, started by the first request of each.

    The store of a principal beyond the `most` that were used last is closed when no call uses it. Its server ends as
    well unless a request is in progress; its client then begins a new session. The server's own principal stays.
    """

    def __init__(self, build: Callable[[str], PrincipalServer], most: int = MOST_PRINCIPALS) -> None:
        """`build` builds the server of a principal."""
        self._build = build
        self._most = most
        self._own = build(SERVERS_OWN)
        self._servers: OrderedDict[str, PrincipalServer] = OrderedDict()
        self._starting = anyio.Lock()
        self._group: TaskGroup

    @property
    def workspaces(self) -> list[Workspace]:
        """The workspaces of all principals."""
        return [server.workspace for server in (self._own, *self._servers.values())]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the servers."""
        async with anyio.create_task_group() as self._group, self._own.app.router.lifespan_context(self._own.app):
            yield
            self._group.cancel_scope.cancel()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes a request on; the user in its scope names the principal."""
        user = scope.get("user")
        principal = user.access_token.subject if isinstance(user, AuthenticatedUser) else SERVERS_OWN
        assert principal is not None  # both verifiers name one
        try:
            server = self._own if principal == SERVERS_OWN else await self._of(principal)
        except SpeckitError as error:
            await JSONResponse({"error": "server_error", "error_description": str(error)}, 500)(scope, receive, send)
            return
        server.requests += 1
        try:
            await server.app(scope, receive, send)
        finally:
            server.requests -= 1

    async def _of(self, principal: str) -> PrincipalServer:
        server = self._servers.get(principal)
        if server is None:
            async with self._starting:
                server = self._servers.get(principal) or await self._group.start(self._run, principal)
        self._servers.move_to_end(principal)
        if len(self._servers) > self._most:
            self._group.start_soon(self._close_oldest)
        return server

    async def _run(self, principal: str, *, task_status: TaskStatus[PrincipalServer]) -> None:
        # in a thread: building takes a moment, and the others are served meanwhile
        server = await anyio.to_thread.run_sync(self._build, principal)
        async with server.app.router.lifespan_context(server.app):
            self._servers[principal] = server
            task_status.started(server)
            await server.ending.wait()

    async def _close_oldest(self) -> None:
        for principal, server in list(self._servers.items())[: -self._most]:
            if server.workspace.is_open:
                # in a thread: closing writes to the store
                await anyio.to_thread.run_sync(close_unused, server.workspace, 0.0)
            if not (server.requests or server.workspace.is_open) and self._servers.get(principal) is server:
                del self._servers[principal]
                server.ending.set()
