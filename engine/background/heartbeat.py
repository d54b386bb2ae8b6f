"""A sign of life beside work that takes its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from speckit_memory.engine.background.best_effort import harmless


@contextmanager
def heartbeat(beat: Callable[[], bool], seconds: float, most: int) -> Iterator[None]:
    """Calls `beat` every so many `seconds` from a thread of its own while the block runs.

    At most so many times, as the block may hang, and no more once it returns False or raises, which is logged and
    reaches nobody. When this is left, no call is under way.
    """
    over = threading.Event()

    def go_on() -> None:
        with harmless("work goes on without a sign of life"):
            for _ in range(most):
                if over.wait(seconds) or not beat():
                    return

    thread = threading.Thread(target=go_on, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
