"""The process that serves a store to several clients, each through a front (`serve --shared`).

Every client has a connection of its own, with its queues, its log and its limits; a client that stalls delays no other.
The process ends some seconds after the last client has gone.
"""

from __future__ import annotations

import asyncio
import gc
import io
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from speckit_memory.config.workspace.options import TOOL_PROFILES, ToolProfile
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console import failures
from speckit_memory.server.jsonrpc.wire import JsonRpcWire
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import share
from speckit_memory.server.mcp_server.app import MemoryServer, workspace_of
from speckit_memory.server.replies.worker_calls import ThreadLimits, own_limits
from speckit_memory.server.transport.shared_socket import SharedSocket, is_of_user
from speckit_memory.server.transport.stdio import server_of
from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry, check_workspaces

GRACE_SECONDS = 3.0
"""How long the process waits for another client after the last one has gone, as when an agent is restarted."""
LOOK_SECONDS = 1.0
ACCEPT_AGAIN_SECONDS = 0.1
"""Pause after a client could not be accepted: it may still wait, and would keep a core busy."""
GREETING_SECONDS = 5.0
"""How long a client may take to greet."""

ServeClient = Callable[[JsonRpcWire], Awaitable[None]]


class SharedProcess:
    """Accepts clients, and serves them on one workspace; there is one server per tool profile in use."""

    def __init__(self, place: SharedSocket, listener: socket.socket) -> None:
        self._place = place
        self._listener = listener
        listener.setblocking(False)
        self._inode = place.path.lstat().st_ino
        self._logs = share()
        logs.configure()
        options = place.options
        self._served = WorkspaceRegistry(
            options.common, {}, (), {}, options.warm_up, options.cache_seconds, options.watch
        )
        self._workspace = workspace_of(options.common, options.root, cache_seconds=options.cache_seconds)
        self._limits = ThreadLimits()
        self._serving: dict[ToolProfile, tuple[MemoryServer, ServeClient]] = {}
        self._building = anyio.Lock()
        self._clients = 0
        self._alone_since = time.monotonic()

    async def run(self) -> None:
        """Accepts clients until a signal arrives or none has been there for `GRACE_SECONDS`."""
        async with anyio.create_task_group() as self._group:
            self._group.start_soon(self._end_on_signal)
            self._group.start_soon(self._end_without_clients)
            while True:
                await anyio.wait_readable(self._listener)
                try:
                    connection, _ = self._listener.accept()
                except OSError:  # the client has gone, or no descriptor is free
                    await anyio.sleep(ACCEPT_AGAIN_SECONDS)
                    continue
                self._clients += 1
                self._group.start_soon(self._serve, connection)

    async def _end_on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                self.finish(128 + received)

    async def _end_without_clients(self) -> None:
        while self._clients or time.monotonic() - self._alone_since < GRACE_SECONDS:
            await anyio.sleep(LOOK_SECONDS)
        self.finish(0)

    def finish(self, status: int) -> NoReturn:
        """Ends the process. Clients that have just connected notice, and start another one."""
        try:
            with suppress(OSError):
                # it may have been removed, and another process may have made its own
                if self._place.path.lstat().st_ino == self._inode:
                    self._place.path.unlink()
            self._listener.close()
            self._workspace.finish(self._limits.running)
            logs.event("stopped", status=status)
            self._logs.drain()
        finally:
            os._exit(status)

    async def _serve(self, connection: socket.socket) -> None:
        """Serves a client until it has gone. Whatever happens concerns this client alone."""
        try:
            with connection:
                connection.setblocking(True)
                profile, descriptor = await self._greeted(connection)
                with self._logs.client(descriptor), own_limits():
                    await self._serve_greeted(connection, profile)
        except OSError:
            pass  # the client has gone
        except Exception as error:
            logs.event("client failed", "warning", problems=[str(failures.internal(error))])
        finally:
            self._clients -= 1
            self._alone_since = time.monotonic()

    async def _greeted(self, connection: socket.socket) -> tuple[ToolProfile | None, int]:
        """The profile that the client had before, if any, and its standard error. Raises OSError if it is none of
        ours."""
        if not is_of_user(connection):
            raise PermissionError
        with anyio.fail_after(GREETING_SECONDS):
            await anyio.wait_readable(connection)
        greeting, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        if not descriptors:
            raise ConnectionAbortedError
        return next((profile for profile in TOOL_PROFILES if profile[:1].encode() == greeting), None), descriptors[0]

    async def _serve_greeted(self, connection: socket.socket, profile: ToolProfile | None) -> None:
        wire = JsonRpcWire(connection.fileno(), connection.fileno(), lambda _error: _hang_up(connection))
        try:
            # a client whose process was replaced keeps what it began with
            returning = profile is not None
            offered = await anyio.to_thread.run_sync(self._check) if profile is None else profile
            server, serve = await self._server(offered)
            wire.put({"profile": offered[:1], "reading_tools": server.reading_tools})
            logs.event("client joined", process=os.getpid(), clients=self._clients, returning=returning)
            await serve(wire)
        except SpeckitError as error:
            text = io.StringIO()
            failures.show_problems(error.problems, text)
            wire.put({"problems": text.getvalue(), "status": 2})
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_close, wire, connection)

    def _check(self) -> ToolProfile:
        """The tool profile in force. Raises SpeckitError if nothing can be served, as at the start of any server."""
        options = self._place.options
        profiles, _ = check_workspaces(options.common, {"": options.root}, options.profile)
        return profiles[0]

    async def _server(self, profile: ToolProfile) -> tuple[MemoryServer, ServeClient]:
        async with self._building:
            if profile not in self._serving:
                self._serving[profile] = await self._group.start(self._run_server, profile)
        return self._serving[profile]

    async def _run_server(
        self, profile: ToolProfile, *, task_status: TaskStatus[tuple[MemoryServer, ServeClient]]
    ) -> None:
        server = server_of(replace(self._served, profiles=(profile,)), self._workspace, [], self._limits)
        gc.freeze()
        async with server.running() as serve:
            task_status.started((server, serve))
            await anyio.sleep_forever()


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _close(wire: JsonRpcWire, connection: socket.socket) -> None:
    """Lets the client read the last answers, and ends its threads."""
    wire.drain()
    _hang_up(connection)
    wire.close()


def main(descriptor: int) -> None:
    """Serves until no client is left; does not return.

    The first client hands over a socket that listens, and on standard input where it is and what to serve.
    """
    gc.disable()
    place: SharedSocket = pickle.load(sys.stdin.buffer)
    listener = socket.socket(fileno=descriptor)
    listener.set_inheritable(False)
    process = SharedProcess(place, listener)
    # Standard error is that of the first client, which may end before this process does.
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    gc.enable()
    try:
        asyncio.run(process.run())
    except BaseException as error:  # not caused by a request: the loop failed
        logs.event("serving failed", problems=[str(failures.internal(error))])
    process.finish(1)
