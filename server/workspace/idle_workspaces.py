"""Closes idle stores of a server with several workspaces."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import anyio.to_thread

from speckit_memory.errors import SpeckitError
from speckit_memory.server.logging import logs
from speckit_memory.server.workspace.workspace import Workspace

IDLE_SECONDS = 1800.0
"""A store is closed after this time without a request: it takes some megabytes, four files and two threads."""
LOOK_SECONDS = 60.0


class RequestUsage:
    """Middleware that marks a workspace as in use while a request is in progress."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Passes the request on."""
        with self._workspace.in_use():
            return await call_next(ctx)


def close_unused(workspace: Workspace, seconds: float) -> bool:
    """Closes the store of a workspace that no request used for some seconds; returns whether it did.

    A failure is logged.
    """
    try:
        return workspace.close_if_idle(seconds)
    except SpeckitError as error:
        logs.event("not closed", problems=[str(problem) for problem in error.problems])
        return False


async def close_idle(
    workspaces: Callable[[], Iterable[Workspace]],
    idle_seconds: float = IDLE_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Closes idle workspaces periodically until cancelled. The next request to one opens it again.

    Args:
        workspaces: Returns those that may be closed.
        idle_seconds: How long no request must have used a workspace.
        look_seconds: How often to look.
    """
    while True:
        await anyio.sleep(look_seconds)
        closed = 0
        for workspace in tuple(workspaces()):
            # in a thread: closing writes to the file and must not block the event loop
            closed += await anyio.to_thread.run_sync(close_unused, workspace, idle_seconds)
        if closed:
            await anyio.to_thread.run_sync(gc.collect)  # reference cycles keep the model file open
