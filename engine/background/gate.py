"""Knows whether a search is being served in this process, so that what has time gives way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from time import perf_counter


class Gate:
    """Counts what is being served. `changed` is notified whenever that changes; hold it to look at several things.

    The interpreter runs one thread at a time: a search is slower for whatever else has something to do.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self._serving = 0
        self._since = perf_counter()
        self._busy = 0.0

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A caller waits for what happens inside. Blocks may stand inside one another, and in many threads."""
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
        """Whether something is being served."""
        return self._serving > 0

    def quiet_for(self) -> float:
        """Seconds since something was served last; 0 while something is."""
        return 0.0 if self._serving else perf_counter() - self._since

    def busy(self) -> float:
        """Seconds in which something was being served, since the process began. Differences of it tell how much of a
        piece of work others may have felt."""
        return self._busy + (perf_counter() - self._since if self._serving else 0.0)


SERVING = Gate()
"""The gate of this process: all stores that are open share its interpreter."""
