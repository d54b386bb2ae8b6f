"""Cooperative yielding: background work calls `yield_now` between small pieces, so that searches can run first.

The interpreter runs one thread at a time, and hands over only every few milliseconds to a thread that does not wait.
Work runs inside `yielding` to give way; elsewhere, as in a command that somebody waits for, `yield_now` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Pause = Callable[[], None]


@contextmanager
def yielding(pause: Pause | None) -> Iterator[None]:
    """Makes `yield_now` call `pause` in this thread inside the block; an exception from it ends the work.

    With None it does nothing, as is right while the block holds a lock that searches need.
    """
    token = _pause.set(pause)
    try:
        yield
    finally:
        _pause.reset(token)


_pause: ContextVar[Pause | None] = ContextVar("pause", default=None)


def yield_now() -> None:
    """Gives way to searches if this thread's work does."""
    pause = _pause.get()
    if pause is not None:
        pause()
