"""Limits on a process that runs components of extensions: its memory, and its time if the server is gone."""

from __future__ import annotations

import signal
from contextlib import suppress


def bound_memory(most: int, *, for_good: bool) -> None:
    """Forbids core dumps and limits the address space of this process, where the platform supports it.

    `most` is in bytes, 0 for no limit. With `for_good` the limit cannot be raised again, nor by child processes.
    """
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_CORE", 0)] + ([("RLIMIT_AS", most)] if most else [])
    for name, limit in wanted:
        with suppress(ValueError, OSError, AttributeError):  # the platform lacks this limit, or a lower one is set
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (soft, soft if for_good else hard))


def expect_within(seconds: float | None) -> None:
    """Sets a timer by which the system ends this process unless it is called again, even during a loop in C.

    `seconds` is None to cancel the timer. Does nothing on platforms without such timers.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
