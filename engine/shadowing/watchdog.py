"""Looks after a thread that may hang, also when nobody asks for anything any more."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Timer

from speckit_memory.engine.timers import begun


class Watchdog:
    """Calls `look` in a thread of its own; that says after how many seconds to look again, None for no more.

    It looks once in all that time, however many ask for it: beginning a thread for each would cost more than a look.
    """

    def __init__(self, look: Callable[[], float | None]) -> None:
        self._look = look
        self._guard = Lock()
        self._timer: Timer | None = None

    def watch(self, seconds: float) -> None:
        """Looks after so long, unless it is going to look anyway."""
        with self._guard:
            if self._timer is None:
                self._timer = begun(seconds, self._looks)

    def end(self) -> None:
        """Does not look any more, until it is asked to."""
        with self._guard:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _looks(self) -> None:
        with self._guard:
            self._timer = None
        if (again := self._look()) is not None:
            self.watch(again)
