"""Tracks the requests that this process serves: background work gives way, and each checks a state once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
        request = _checked.set(set()) if _checked.get() is None else None
        try:
            yield
        finally:
            if request is not None:
                _checked.reset(request)
            with self.changed:
                self._serving -= 1
                if not self._serving:
                    now = perf_counter()
                    self._busy += now - self._since
                    self._since = now
                    self.changed.notify_all()

    def has_checked(self, checked: object) -> bool:
        """Whether this request has checked the state of this object; false outside a request."""
        return id(checked) in (_checked.get() or ())

    def note_checked(self, checked: object) -> None:
        """Records that this request, if any, has checked the state of this object."""
        if (known := _checked.get()) is not None:
            known.add(id(checked))

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


_checked: ContextVar[set[int] | None] = ContextVar("checked", default=None)
"""Ids of the objects that this request has checked; None outside a request."""

SERVING = Gate()
"""The gate of this process: all open stores share its interpreter."""
