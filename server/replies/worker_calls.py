"""Calls that are answered by worker threads: how many of each kind run at once, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from speckit_memory.pipeline.process.cancellation import Withdrawal, require_wanted
from speckit_memory.server.replies.call_progress import CallProgress, telling

T = TypeVar("T")

READING = 6
"""Enough to hide waiting, few enough not to fight over the processor."""
WRITING = 4
LENGTHY = 2
"""Scans write in turns: more of them at once would be no faster, and leave less of the processor to the others."""


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """How many calls run at once, by kind, so that no kind waits for another.

    `reading` is for searches and what is as quick; `writing` for what may wait for the lock of the store, and for
    checks of all of it; `lengthy` for what may take minutes, such as an index run.
    """

    reading: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(READING))
    writing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(WRITING))
    lengthy: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(LENGTHY))

    @property
    def running(self) -> int:
        """How many calls run now."""
        return sum(int(limiter.borrowed_tokens) for limiter in (self.reading, self.writing, self.lengthy))


class WorkerCall(Generic[T]):
    """Work in a thread whose answer one caller waits for, or several that asked for the same.

    The work ends before its next step when no caller waits any more; until then the thread keeps its place.
    """

    def __init__(self, work: Callable[[], T], limiter: anyio.CapacityLimiter) -> None:
        """To be made in the event loop by the first caller; the work begins at once or when there is a free place."""
        self._withdrawal = Withdrawal()
        self._progress: list[CallProgress] = []
        self._guard = Lock()
        self._callers = 1
        self._shared = self._closed = False

        def run() -> T:
            with self._withdrawal.asking(), telling(self._progress), _working_for(self):
                require_wanted()  # the callers may have gone while the work waited for its place
                return work()

        # A task of its own: it outlives the caller that began it. The loop leaves the thread behind when it ends.
        self._task = asyncio.create_task(anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter))
        _tasks.add(self._task)
        self._task.add_done_callback(_end)

    def join(self) -> bool:
        """Adds a caller, who must ask for the `answer` then. False where it is too late for that."""
        with self._guard:
            if self._closed or self._withdrawal.withdrawn or self._task.done():
                return False
            self._callers += 1
            self._shared = True
            return True

    def close(self) -> bool:
        """Lets nobody join from now on; whether anybody has joined. For the thread that does the work."""
        with self._guard:
            self._closed = True
            return self._shared

    async def answer(self, progress: CallProgress | None = None) -> T:
        """What the work returns or raises; each caller asks once."""
        if progress is not None:
            self._progress.append(progress)
        try:
            return await asyncio.shield(self._task)
        finally:
            if progress is not None:
                self._progress.remove(progress)
            with self._guard:
                self._callers -= 1
                if not self._callers:
                    self._withdrawal.withdraw()


class EqualCalls(Generic[T]):
    """The calls under way that equal ones may join, by what makes them equal."""

    def __init__(self) -> None:
        # what is done goes with the thread and the callers that held it, and its answer with it
        self._calls: WeakValueDictionary[Hashable, WorkerCall[T]] = WeakValueDictionary()

    def joined(self, key: Hashable | None, begin: Callable[[], WorkerCall[T]]) -> WorkerCall[T]:
        """The call under way with this key, else a new one; None is equal to nothing. For the event loop."""
        call = self._calls.get(key)
        if key is not None and call is not None and call.join():
            return call
        call = begin()
        if key is not None:
            self._calls[key] = call
        return call


def close_to_equal_calls() -> bool:
    """Lets no further call join the one that this thread works for; whether one has joined it before."""
    call = _call.get()
    return call is not None and call.close()


@contextmanager
def _working_for(call: WorkerCall[Any]) -> Iterator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


def _end(task: asyncio.Task[Any]) -> None:
    """Forgets a task, and takes note of what it raised for callers that have gone."""
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()


_call: ContextVar[WorkerCall[Any] | None] = ContextVar("call", default=None)
_tasks: set[asyncio.Task[Any]] = set()
"""The loop itself holds no task."""
