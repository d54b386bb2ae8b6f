"""Work that is done a little later, beside answers, which never fail for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Timer

LOGGER = logging.getLogger(__name__)


def begun(seconds: float, work: Callable[[], None]) -> Timer | None:
    """A timer that runs and calls `work` after so many seconds, in a thread of its own that keeps no process alive.

    None where no thread can be started now: whoever needs it tries again with whatever comes next.
    """
    timer = Timer(seconds, work)
    timer.daemon = True
    try:
        timer.start()
    except (RuntimeError, MemoryError) as error:
        LOGGER.warning("what is done in a moment waits for the next time: %s", error)
        return None
    return timer
