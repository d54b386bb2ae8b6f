"""How far a long call is, told to the client that asked to be told, by the thread that does the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import anyio.from_thread


class Progress(Protocol):
    """How far a phase of the work is: `total` None while nobody knows."""

    @property
    def done(self) -> int:
        """What is finished."""

    @property
    def total(self) -> int | None:
        """How much there is."""

    @property
    def phase(self) -> str:
        """Which phase, "" for the first."""


@dataclass(frozen=True, slots=True)
class Pages:
    """How many pages of a store are copied."""

    done: int
    total: int
    phase: str = "pages"


class CallProgress:
    """Sends the progress of one call. The figures only grow, as the protocol wants it: phases are added up."""

    def __init__(self, context: Any, unit: str) -> None:
        """`context` is the SDK's of the call, None outside of a server; `unit` is told of the first phase."""
        self._context = context
        self._unit = unit
        self._phase = ""
        self._before = 0
        self._told = 0

    def told(self, progress: Progress) -> None:
        """Sends how far it is. A client that cannot be told is told nothing: the work goes on."""
        if progress.phase != self._phase:
            self._phase, self._before = progress.phase, self._told
        done = self._before + progress.done
        if done <= self._told or self._context is None:
            return
        self._told = done
        total = None if progress.total is None else self._before + progress.total
        with suppress(Exception):  # the call was taken back, or the loop has ended
            anyio.from_thread.run(self._context.report_progress, done, total, progress.phase or self._unit)


_telling: ContextVar[Sequence[CallProgress]] = ContextVar("telling", default=())


@contextmanager
def telling(calls: Sequence[CallProgress]) -> Iterator[None]:
    """What this thread does inside, and `tell`s of, is done for these calls, which may become more or fewer."""
    token = _telling.set(calls)
    try:
        yield
    finally:
        _telling.reset(token)


def tell(progress: Progress) -> None:
    """Tells the clients of the calls that this thread works for, if they want to know."""
    for call in tuple(_telling.get()):
        call.told(progress)
