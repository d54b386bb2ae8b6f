"""Tracks whether this process is serving a search, so that background work can give way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from time import perf_counter


class Gate:
    """Counts the requests being served. `changed` is notified when the count drops to 0; hold it to read several
    values.

    The interpreter runs one thread at a time, so any other running thread slows a search down.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self._serving = 0
        self._since = perf_counter()
        self._busy = 0.0

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Marks the block as serving a waiting caller. Blocks may be nested and may run in many threads."""
        with self.changed:
            if not self._serving:
                self._since = perf_counter()
            self._serving += 1
        try:
            yield
        finally:
            with self.changed:
                self._serving -= 1
                if not self._serving:
                    now = perf_counter()
                    self._busy += now - self._since
                    self._since = now
                    self.changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether a request is being served."""
        return self._serving > 0

    def quiet_for(self) -> float:
        """Seconds since the last request ended; 0 while one is being served."""
        return 0.0 if self._serving else perf_counter() - self._since

    def busy(self) -> float:
        """Total seconds of serving in this process; a difference bounds how much requests felt a piece of work."""
        return self._busy + (perf_counter() - self._since if self._serving else 0.0)


SERVING = Gate()
"""The gate of this process: all open stores share its interpreter."""
