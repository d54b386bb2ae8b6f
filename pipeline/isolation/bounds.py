"""What a process that runs components of others takes upon itself: no more memory, and an end though nobody ends it."""

from __future__ import annotations

import signal
from contextlib import suppress


def bound_memory(most: int, *, for_good: bool) -> None:
    """Allows this process no core dumps and no more than so many bytes of address space, 0 for any, where the platform
    can say so. `for_good`: it cannot be raised again, in no process that this one starts either."""
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_CORE", 0)] + ([("RLIMIT_AS", most)] if most else [])
    for name, limit in wanted:
        with suppress(ValueError, OSError, AttributeError):  # a limit that the platform does not know, or a lower one
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (soft, soft if for_good else hard))


def expect_within(seconds: float | None) -> None:
    """Has the system end this process unless it is called again within so many seconds, whatever a component does, be
    it a loop in C; None for no end. Nothing where the platform has no such timers."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
