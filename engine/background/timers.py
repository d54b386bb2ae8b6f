"""Runs deferred work in timers, without failing the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Timer

LOGGER = logging.getLogger(__name__)


def begun(seconds: float, work: Callable[[], None]) -> Timer | None:
    """A started daemon timer that calls `work` after `seconds`.

    None if no thread can be started now; the caller tries again with its next event.
    """
    timer = Timer(seconds, work)
    timer.daemon = True
    try:
        timer.start()
    except (RuntimeError, MemoryError) as error:
        LOGGER.warning("delayed work waits for the next event: %s", error)
        return None
    return timer
