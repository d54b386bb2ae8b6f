"""MCP over standard input and output."""

from __future__ import annotations

import gc
import os
import signal
from typing import NoReturn

import anyio

from speckit_memory.server import failures, logs
from speckit_memory.server.failures import CLOSED_PIPE
from speckit_memory.server.log_stream import detach
from speckit_memory.server.options import Common


def serve_stdio(common: Common, *, warm_up: bool) -> NoReturn:
    """Serves until the client closes its end, or a signal comes. Does not return: it ends the process.

    The interpreter's own shutdown would wait for the thread that reads standard input, and for tools still running.
    """
    # Nothing allocated before the server stands is garbage; looking for some would delay the first answer.
    gc.disable()
    stream = detach()
    logs.configure()
    from speckit_memory.server.app import THREADS, build, workspace_of
    from speckit_memory.server.wire import Wire

    workspace = workspace_of(common)
    limiter = anyio.CapacityLimiter(THREADS)

    def finish(status: int) -> NoReturn:
        try:
            workspace.finish(limiter.borrowed_tokens)
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

    async def serve() -> None:
        server = build(workspace, warm_up=warm_up, limiter=limiter)
        gc.freeze()
        gc.enable()
        async with anyio.create_task_group() as group:
            group.start_soon(end_on_signal)
            await server.run_on(wire)
            finish(0)

    wire = Wire(_claim(0, os.O_RDONLY), _claim(1, os.O_WRONLY), broken)
    try:
        anyio.run(serve)
    except BaseException as error:  # nothing that one request did: the SDK's own loop failed
        logs.event("serving failed", problems=[str(failures.internal(error))])
    finish(1)


def _claim(descriptor: int, mode: int) -> int:
    """Our own copy of a standard stream, in whose place the rest of the process finds nothing to read or disturb."""
    own = os.dup(descriptor)
    if mode == os.O_RDONLY:
        os.dup2(os.open(os.devnull, mode), descriptor)
    else:
        os.dup2(2, descriptor)
    return own
