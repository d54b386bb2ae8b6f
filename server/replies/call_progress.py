"""Reports the progress of a long call to the client that asked for it, from the thread that does the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import anyio.from_thread


class PhaseProgress(Protocol):
    """Progress of a phase; `total` is None while it is unknown."""

    @property
    def done(self) -> int:
        """Units finished."""

    @property
    def total(self) -> int | None:
        """Units in all."""

    @property
    def phase(self) -> str:
        """Name of the phase, "" for the first."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of a store copied so far."""

    done: int
    total: int
    phase: str = "pages"


class CallProgress:
    """Sends the progress of one call. Phases are added up, since the protocol requires figures that only grow."""

    def __init__(self, context: Any, unit: str) -> None:
        """`context` is the SDK's context of the call, None outside a server; `unit` names the first phase."""
        self._context = context
        self._unit = unit
        self._phase = ""
        self._before = 0
        self._told = 0

    def told(self, progress: PhaseProgress) -> None:
        """Sends the progress. Failures to send are ignored: the work goes on."""
        # a new phase starts counting at 0: continue from the last figure sent
        if progress.phase != self._phase:
            self._phase, self._before = progress.phase, self._told
        done = self._before + progress.done
        if done <= self._told or self._context is None:
            return
        self._told = done
        total = None if progress.total is None else self._before + progress.total
        with suppress(Exception):  # the call was cancelled, or the loop has ended
            anyio.from_thread.run(self._context.report_progress, done, total, progress.phase or self._unit)


_telling: ContextVar[Sequence[CallProgress]] = ContextVar("telling", default=())


@contextmanager
def telling(calls: Sequence[CallProgress]) -> Iterator[None]:
    """Makes `tell` in this thread report to these calls; the sequence may grow and shrink meanwhile."""
    token = _telling.set(calls)
    try:
        yield
    finally:
        _telling.reset(token)


def tell(progress: PhaseProgress) -> None:
    """Reports progress to the calls this thread works for."""
    for call in tuple(_telling.get()):
        call.told(progress)
