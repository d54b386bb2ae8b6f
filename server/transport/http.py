"""Serves MCP over streamable HTTP with uvicorn: on loopback by default, elsewhere only with a token."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.errors import SpeckitError
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import detach
from speckit_memory.server.transport.http_access import PATH, AccessOptions, guards_of
from speckit_memory.server.transport.http_guard import App, Guard, is_loopback
from speckit_memory.server.transport.http_hangups import CancelHungUp, HangUps
from speckit_memory.server.transport.http_paths import by_path
from speckit_memory.server.transport.http_principals import SERVERS_OWN, PrincipalServer, PrincipalServers
from speckit_memory.server.transport.http_protocol import (
    KEEP_ALIVE_SECONDS,
    LONGEST_HEAD,
    MOST_CONNECTIONS,
    BoundedProtocol,
)
from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry
from speckit_memory.server.workspace.idle_workspaces import RequestUsage, close_idle

if TYPE_CHECKING:
    from speckit_memory.server.workspace.workspace import Workspace


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


GRACE_SECONDS = 2
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST_SESSIONS = 1000
WILDCARDS = ("0.0.0.0", "::")


class QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again before the store is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to `_serve_until_signal`."""
        yield


def own_names(host: str, allowed: Sequence[str]) -> list[str]:
    """The names under which clients may address the server; requests under other names, as from a web page that rebinds
    DNS, are refused."""
    names = list(LOOPBACK_NAMES)
    if host in WILDCARDS:
        names += [socket.gethostname(), socket.getfqdn()]
    elif not is_loopback(host):
        names.append(f"[{host}]" if ":" in host else host)
    return list(dict.fromkeys([*names, *allowed]))


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket. Raises E034 if the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise SpeckitError(
            "E034", f"cannot listen on {_display_host(host)}:{port}: {error.strerror or error}"
        ) from None
    # Accepted sockets inherit this, and asyncio does not change it. With Nagle's algorithm the end of an answer would
    # wait for the client's acknowledgement of the beginning, which takes 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def configuration(app: Guard) -> uvicorn.Config:
    """uvicorn's settings: bounded in time and size, without its own logs."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=MOST_CONNECTIONS,  # accepted at once, before the loop closes those that were replaced
    )


def serve_http(served: WorkspaceRegistry, host: str, port: int, access: AccessOptions, allowed: Sequence[str]) -> int:
    """Serves until a signal arrives, then ends the process. Each named workspace has a path with its name.

    Args:
        served: The workspaces and how they are served.
        host: Address to listen on.
        port: Port to listen on; 0 for any free one.
        access: Whose tokens are accepted.
        allowed: Further host names under which clients may address the server.

    Raises:
        SpeckitError: For options of access that cannot be used, such as E031 if other machines can reach the address
            and no token is needed.
    """
    access.check(host)
    roots: Mapping[str, tuple[str, Path | None]] = {
        f"{PATH}/{name}": (name, root) for name, root in served.roots.items()
    } or {PATH: ("", None)}
    guards, open_to_all = guards_of(access, roots)
    listener = listen(host, port)
    stream = detach()
    logs.configure()
    from speckit_memory.server.calls.worker_processes import WorkerProcesses
    from speckit_memory.server.mcp_server.app import build, workspace_of
    from speckit_memory.server.replies.worker_calls import ThreadLimits

    served.log_broken()
    limits = ThreadLimits()
    workers = WorkerProcesses(served.workers, served.of_worker()) if served.workers > 1 else None

    def server_of(path: str, profile: ToolProfile, principal: str) -> PrincipalServer:
        # one MCP server per workspace and principal; the thread limits are shared by all
        name, root = roots[path]
        is_own = principal == SERVERS_OWN
        common = served.common if is_own else replace(served.common, principal=principal)
        workspace = workspace_of(common, root, name=name, cache_seconds=served.cache_seconds)
        server = build(
            workspace,
            warm_up=served.warm_up and is_own,
            watch=served.watch and is_own,
            limits=limits,
            profile=profile,
            middleware=[CancelHungUp(), RequestUsage(workspace)],
            workers=workers,
            principal=principal,
        )
        app = server.streamable_http_app(
            streamable_http_path=path,
            host=host,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `Guard` does that
            max_sessions=MOST_SESSIONS,
        )
        return PrincipalServer(workspace, app)

    # insertion order: `served.profiles` has the order of the workspaces
    apps = {
        path: PrincipalServers(partial(server_of, path, profile))
        for path, profile in zip(roots, served.profiles, strict=True)
    }

    def workspaces() -> Iterator[Workspace]:
        return chain.from_iterable(app.workspaces for app in apps.values())

    app = by_path(apps, guards, open_to_all)
    runner = QuietServer(configuration(Guard(HangUps(LongBodies(app)), own_names(host, allowed))))
    address = f"http://{_display_host(host)}:{listener.getsockname()[1]}"
    for path in apps:
        logs.event("listening", url=f"{address}{path}", token=bool(access.token_file or access.issuer))
    # a single store stays open: no other process does its background work
    status = anyio.run(_serve_until_signal, runner, listener, workspaces if served.roots else tuple)
    if workers is not None:
        workers.close()
    for workspace in workspaces():
        workspace.finish(limits.running)
    logs.event("stopped", status=status)
    stream.drain()
    os._exit(status)  # a tool that still runs must not hold the process


async def _serve_until_signal(
    runner: uvicorn.Server, listener: socket.socket, closed_when_idle: Callable[[], Iterable[Workspace]]
) -> int:
    status = 0

    async def stop_on_signal() -> None:
        nonlocal status
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                status = 128 + received
                runner.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(stop_on_signal)
        group.start_soon(close_idle, closed_when_idle)
        await runner.serve(sockets=[listener])
        group.cancel_scope.cancel()
    return status


def _display_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
