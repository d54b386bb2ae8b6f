"""What a thread that runs variants is at, and how it is told to stop."""

from __future__ import annotations

import threading

from speckit_memory.engine.shadowing.job import Job
from speckit_memory.engine.shadowing.variant import RunningVariant


class EndedError(BaseException):
    """The thread that this is raised in has been given up. Nothing that stands between catches it."""


class BusyError(BaseException):
    """Searches leave no time for the variant that this is raised in. Nothing that stands between catches it."""


class Turn:
    """What one thread is at. Another takes its place when it hangs."""

    def __init__(self) -> None:
        self.over = False
        self.step = ""
        self.since: float | None = None
        self.task: tuple[Job, RunningVariant | None] | None = None
        self.thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether its thread still goes on."""
        return self.thread is not None and self.thread.is_alive()
