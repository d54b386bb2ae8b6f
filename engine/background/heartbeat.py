"""Sends heartbeats during long work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from speckit_memory.engine.background.best_effort import harmless


@contextmanager
def heartbeat(beat: Callable[[], bool], seconds: float, most: int) -> Iterator[None]:
    """Calls `beat` every `seconds` from a separate thread while the block runs.

    Stops after `most` calls, as the block may hang, and when `beat` returns False or raises; exceptions are logged. No
    call is in progress after the block.
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
