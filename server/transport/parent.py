"""The process that started this one: when it ends, nobody is there to be served, whoever else holds its pipe."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio

LOOK_SECONDS = 2.0
INIT = 1
"""The first process takes over what has lost its parent. A parent in another name space has the id 0."""


async def gone(
    parent: int, of_now: Callable[[], int] = os.getppid, pause: Callable[[float], Awaitable[None]] = anyio.sleep
) -> None:
    """Returns when the process with the id `parent` is not the parent any more.

    Never returns for who was started by the first process, or taken over by it before it looked: that parent stays.
    """
    if parent <= INIT:
        await anyio.sleep_forever()
    while of_now() == parent:
        await pause(LOOK_SECONDS)
