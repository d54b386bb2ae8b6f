"""MCP over standard input and output."""

from __future__ import annotations

import gc
import os
import signal
import sys

import anyio

from server import logs
from server.options import Common


def serve_stdio(common: Common, *, warm_up: bool) -> int:
    """Serves until the client closes standard input, or a signal comes. Does not return: it ends the process.

    The interpreter's own shutdown would wait for the thread that reads standard input, and for tools still running.
    """
    # Nothing allocated before the server stands is garbage; looking for some would delay the first answer.
    gc.disable()
    logs.configure()
    from server.app import THREADS, build, workspace_of

    workspace = workspace_of(common)
    limiter = anyio.CapacityLimiter(THREADS)
    status = 0

    async def end_on_signal(scope: anyio.CancelScope) -> None:
        nonlocal status
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                status = 128 + received
                scope.cancel()
                finish()

    def finish() -> None:
        workspace.finish(limiter.borrowed_tokens)
        logs.event("stopped", status=status)
        sys.stderr.flush()
        os._exit(status)

    async def serve() -> None:
        server = build(workspace, warm_up=warm_up, limiter=limiter)
        gc.freeze()
        gc.enable()
        async with anyio.create_task_group() as group:
            group.start_soon(end_on_signal, group.cancel_scope)
            await server.run_stdio_async()
            finish()

    anyio.run(serve)
    return status
