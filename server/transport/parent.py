"""Detects the end of the parent process: without it there is no client, even if another process keeps the pipe open."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio

LOOK_SECONDS = 2.0
INIT = 1
"""The id of the first process, which adopts orphans. A parent in another namespace has the id 0."""


async def parent_gone(
    parent: int, of_now: Callable[[], int] = os.getppid, pause: Callable[[float], Awaitable[None]] = anyio.sleep
) -> None:
    """Returns when the process `parent` is no longer the parent.

    Never returns if the parent is the first process, which does not end.
    """
    if parent <= INIT:
        await anyio.sleep_forever()
    # the kernel gives an orphan a new parent, so a changed id means that the parent has ended
    while of_now() == parent:
        await pause(LOOK_SECONDS)
