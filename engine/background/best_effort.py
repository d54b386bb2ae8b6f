"""Side work that must not affect an answer: suppressed exceptions and deferred calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

LOGGER = logging.getLogger(__name__)


@contextmanager
def harmless(what: str) -> Iterator[None]:
    """Logs any exception from the block as `what` and suppresses it."""
    try:
        yield
    except Exception as error:
        LOGGER.warning("%s", what, exc_info=error)


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
