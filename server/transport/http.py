"""Serves MCP over streamable HTTP with uvicorn: on loopback by default, elsewhere only with a token."""

from __future__ import annotations

import hmac
import os
import signal
import socket
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.errors import SpeckitError
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import detach
from speckit_memory.server.transport.http_guard import App, Guard
from speckit_memory.server.transport.http_hangups import CancelHungUp, HangUps
from speckit_memory.server.transport.http_paths import by_path
from speckit_memory.server.transport.http_protocol import (
    KEEP_ALIVE_SECONDS,
    LONGEST_HEAD,
    MOST_CONNECTIONS,
    BoundedProtocol,
)
from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry
from speckit_memory.server.workspace.idle_workspaces import RequestUsage, close_idle

if TYPE_CHECKING:
    from starlette.applications import Starlette

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


PATH = "/mcp"
SCOPE = "memory"
MIN_TOKEN = 16
GRACE_SECONDS = 2
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST_SESSIONS = 1000
WILDCARDS = ("0.0.0.0", "::")


class StaticToken:
    """Accepts one bearer token, compared in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller's identity, None for a wrong token."""
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            return None
        return AccessToken(token=token, client_id="speckit-memory-client", scopes=[SCOPE])


class QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again before the store is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to `_serve_until_signal`."""
        yield


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path) -> str:
    """Reads the token from a file. Raises E010, E011 or E032."""
    try:
        token = read_text(file).strip()
    except FileNotFoundError:
        raise SpeckitError("E010", f"the token file '{file}' does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpeckitError("E011", f"the token file '{file}' cannot be read: {error}") from None
    if len(token) < MIN_TOKEN or not token.isascii() or any(sign.isspace() for sign in token):
        raise SpeckitError(
            "E032",
            f"the token in '{file}' cannot be used",
            hint=f"A token has at least {MIN_TOKEN} ASCII characters and no blanks.",
            actions=("make one with `openssl rand -hex 32`",),
        )
    return token


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


def serve_http(served: WorkspaceRegistry, host: str, port: int, token_file: Path | None, allowed: Sequence[str]) -> int:
    """Serves until a signal arrives, then ends the process. Each named workspace has a path with its name.

    Args:
        served: The workspaces and how they are served.
        host: Address to listen on.
        port: Port to listen on; 0 for any free one.
        token_file: File with the bearer token; None for no authentication.
        allowed: Further host names under which clients may address the server.

    Raises:
        SpeckitError: E031 if other machines can reach the address and no token is given.
    """
    token = read_token(token_file) if token_file else ""
    if not token and not is_loopback(host):
        raise SpeckitError(
            "E031",
            f"--host {host} can be reached by others and needs --token-file",
            hint="Every client that can connect can read and write the memory.",
            actions=("add --token-file FILE", "leave --host out to serve this machine only"),
        )
    listener = listen(host, port)
    stream = detach()
    logs.configure()
    from speckit_memory.server.calls.worker_processes import WorkerProcesses
    from speckit_memory.server.mcp_server.app import build, workspace_of
    from speckit_memory.server.replies.worker_calls import ThreadLimits

    served.log_broken()
    open_in = partial(workspace_of, served.common, cache_seconds=served.cache_seconds)
    workspaces = {f"{PATH}/{name}": open_in(root, name=name) for name, root in served.roots.items()}
    workspaces = workspaces or {PATH: open_in()}
    limits = ThreadLimits()
    workers = WorkerProcesses(served.workers, served.of_worker()) if served.workers > 1 else None
    # the SDK requires an issuer; with static tokens clients never contact it
    auth = AuthSettings(issuer_url=AnyHttpUrl("http://127.0.0.1:1"), resource_server_url=None, required_scopes=[SCOPE])
    verifier = StaticToken(token) if token else None

    def application(path: str, workspace: Workspace, profile: ToolProfile) -> Starlette:
        # one MCP server per workspace; the thread limits are shared by all
        server = build(
            workspace,
            warm_up=served.warm_up,
            watch=served.watch,
            limits=limits,
            profile=profile,
            token_verifier=verifier,
            auth=auth if token else None,
            middleware=[CancelHungUp(), *([RequestUsage(workspace)] if served.roots else [])],
            workers=workers,
        )
        return server.streamable_http_app(
            streamable_http_path=path,
            host=host,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `Guard` does that
            max_sessions=MOST_SESSIONS,
        )

    # insertion order: `served.profiles` has the order of the workspaces
    apps = {
        path: application(path, workspace, profile)
        for (path, workspace), profile in zip(workspaces.items(), served.profiles, strict=True)
    }
    app = by_path(apps, verifier, default=None if served.roots else apps[PATH])
    runner = QuietServer(configuration(Guard(HangUps(LongBodies(app)), own_names(host, allowed))))
    address = f"http://{_display_host(host)}:{listener.getsockname()[1]}"
    for path in apps:
        logs.event("listening", url=f"{address}{path}", token=bool(token))
    # a single store stays open: no other process does its background work
    status = anyio.run(_serve_until_signal, runner, listener, workspaces.values() if served.roots else ())
    if workers is not None:
        workers.close()
    for workspace in workspaces.values():
        workspace.finish(limits.running)
    logs.event("stopped", status=status)
    stream.drain()
    os._exit(status)  # a tool that still runs must not hold the process


async def _serve_until_signal(
    runner: uvicorn.Server, listener: socket.socket, closed_when_idle: Iterable[Workspace]
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
