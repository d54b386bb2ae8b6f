"""Closes the stores that nobody uses, of a server with several workspaces."""

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
"""A store is closed when nobody has asked for it for so long: it takes some megabytes, four files and two threads."""
LOOK_SECONDS = 60.0


class InUse:
    """Middleware that keeps a workspace from counting as idle while a request of its clients is under way."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Passes the request on."""
        with self._workspace.in_use():
            return await call_next(ctx)


async def close_idle(
    workspaces: Iterable[Workspace], idle_seconds: float = IDLE_SECONDS, look_seconds: float = LOOK_SECONDS
) -> None:
    """Looks again and again, until it is cancelled. Whoever comes back waits for the opening, as the first did."""
    every = tuple(workspaces)
    while True:
        await anyio.sleep(look_seconds)
        closed = 0
        for workspace in every:
            try:
                closed += await anyio.to_thread.run_sync(workspace.close_if_idle, idle_seconds)
            except SpeckitError as error:
                logs.event("not closed", problems=[str(problem) for problem in error.problems])
        if closed:
            await anyio.to_thread.run_sync(gc.collect)  # what refers to itself keeps the file of the model open
