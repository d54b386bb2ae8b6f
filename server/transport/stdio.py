"""Serves MCP over standard input and output."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from speckit_memory.server.console import failures
from speckit_memory.server.console.failures import CLOSED_PIPE
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import detach
from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry

if TYPE_CHECKING:
    from speckit_memory.server.mcp_server.app import MemoryServer
    from speckit_memory.server.replies.worker_calls import ThreadLimits
    from speckit_memory.server.workspace.workspace import Workspace

LOOK_SECONDS = 2.0
INIT = 1
"""The id of the first process, which adopts orphans. A parent in another namespace has the id 0."""


async def parent_gone(parent: int) -> None:
    """Returns when the process `parent` is no longer the parent: without it there is no client, even if another process
    keeps the pipe open.

    Never returns if the parent is the first process, which does not end.
    """
    if parent <= INIT:
        await anyio.sleep_forever()
    # the kernel gives an orphan a new parent, so a changed id means that the parent has ended
    while os.getppid() == parent:
        await anyio.sleep(LOOK_SECONDS)


def workspace_of_client(served: WorkspaceRegistry) -> tuple[Workspace, list[Any]]:
    """The workspace to serve, and the middleware that lets the client choose one of several."""
    from speckit_memory.server.mcp_server.app import workspace_of

    roots = served.roots
    if len(roots) < 2:
        return workspace_of(served.common, next(iter(roots.values()), None), cache_seconds=served.cache_seconds), []
    from speckit_memory.server.workspace.client_roots import ChosenWorkspace, ClientRoots

    chosen = ChosenWorkspace(served.common, roots, cache_seconds=served.cache_seconds)
    return chosen, [ClientRoots(chosen)]


def server_of(
    served: WorkspaceRegistry, workspace: Workspace, middleware: list[Any], limits: ThreadLimits
) -> MemoryServer:
    """Builds the server of a workspace for stdio.

    Args:
        served: The options of the server.
        workspace: The workspace to serve.
        middleware: Further middleware.
        limits: Bounds on worker threads.
    """
    from speckit_memory.server.mcp_server.app import build

    # tools are listed before a workspace is chosen: use the common profile, or all tools if the profiles differ
    wanted = set(served.profiles)
    profile = wanted.pop() if len(wanted) == 1 else "full"
    return build(
        workspace,
        warm_up=served.warm_up,
        limits=limits,
        profile=profile,
        watch=served.watch,
        middleware=middleware,
    )


def serve_stdio(served: WorkspaceRegistry) -> NoReturn:
    """Serves until the client closes its end, the parent process ends, or a signal arrives; then ends the process.

    If there are several workspaces, the folders announced by the client select one.

    The process ends with `os._exit`, because the interpreter's shutdown would wait for the thread that reads standard
    input and for running tools.
    """
    # Nothing allocated during start-up is garbage; a collection would delay the first answer.
    gc.disable()
    started_by = os.getppid()
    stream = detach()
    logs.configure()
    from speckit_memory.server.jsonrpc.wire import JsonRpcWire
    from speckit_memory.server.replies.worker_calls import ThreadLimits

    served.log_broken()
    workspace, middleware = workspace_of_client(served)
    limits = ThreadLimits()

    def finish(status: int) -> NoReturn:
        try:
            workspace.finish(limits.running)
            wire.drain()
            logs.event("stopped", status=status)
            stream.drain()
        finally:
            os._exit(status)

    def broken(error: OSError) -> None:
        logs.event("standard output cannot be written", problems=[error.strerror])
        finish(CLOSED_PIPE if isinstance(error, BrokenPipeError) else 1)

    async def end_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                finish(128 + received)

    async def end_with_parent() -> None:
        await parent_gone(started_by)
        logs.event("parent has ended")
        finish(0)

    async def serve() -> None:
        server = server_of(served, workspace, middleware, limits)
        gc.freeze()
        gc.enable()
        async with anyio.create_task_group() as group:
            group.start_soon(end_on_signal)
            group.start_soon(end_with_parent)
            async with server.running() as serve_client:
                await serve_client(wire)
                finish(0)

    # claimed before any component runs, so that a stray print cannot corrupt the protocol
    wire = JsonRpcWire(_claim(0, os.O_RDONLY), _claim(1, os.O_WRONLY), broken)
    try:
        anyio.run(serve)
    except BaseException as error:  # not caused by a request: the SDK's loop failed
        logs.event("serving failed", problems=[str(failures.internal(error))])
    finish(1)


def _claim(descriptor: int, mode: int) -> int:
    """Duplicates a standard stream for our use and redirects the original, so that other code cannot disturb it."""
    own = os.dup(descriptor)
    if mode == os.O_RDONLY:
        os.dup2(os.open(os.devnull, mode), descriptor)
    else:
        os.dup2(2, descriptor)
    return own
