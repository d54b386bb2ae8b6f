"""Runs calls in worker threads: limits per kind, and sharing of equal calls."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

import anyio
import anyio.to_thread

from speckit_memory.pipeline.process.cancellation import Withdrawal, require_wanted
from speckit_memory.server.replies.call_progress import CallProgress, telling

T = TypeVar("T")

READING = 6
"""Enough threads to overlap waiting, few enough not to compete for the processor."""
WRITING = 4
LENGTHY = 2
"""Scans write in turns: more at once would not be faster and would slow other calls down."""


_MOST_ARENAS = -8
"""glibc's `M_ARENA_MAX`."""


def share_one_arena() -> None:
    """Makes all threads allocate from one arena, where the C library is glibc: memory that one thread freed is then
    used by the others. Threads seldom allocate at once, as they share the interpreter."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, 1)


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """Limits on concurrent calls by kind, so that no kind waits for another.

    `reading` is for searches and similarly fast calls; `writing` for calls that may wait for the store's lock, and for
    checks of the whole store; `lengthy` for calls that may take minutes, such as an index run.
    """

    reading: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(READING))
    writing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(WRITING))
    lengthy: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(LENGTHY))

    @property
    def running(self) -> int:
        """Number of running calls, those under the limits of single clients included."""
        limiters = (self.reading, self.writing, self.lengthy, *_of_clients)
        return sum(int(limiter.borrowed_tokens) for limiter in limiters)


class WorkerCall(Generic[T]):
    """Work in a thread with one or more callers waiting for its result.

    When no caller waits any more, the work ends before its next step; until then it occupies its thread.
    """

    def __init__(self, work: Callable[[], T], limiter: anyio.CapacityLimiter) -> None:
        """Must be created in the event loop, by the first caller; the work starts when the limiter has a free place."""
        self._withdrawal = Withdrawal()
        self._progress: list[CallProgress] = []
        # guards the three fields below: `join` is called in the event loop, `close` in the thread of the work
        self._guard = Lock()
        self._callers = 1
        limiter = _limiter_of_client(limiter)
        self._shared = self._closed = False

        def run() -> T:
            with self._withdrawal.asking(), telling(self._progress), _working_for(self):
                require_wanted()  # all callers may have left while the work was waiting
                return work()

        # A separate task, as it may outlive the first caller. When the loop ends, the thread is abandoned.
        self._task = asyncio.create_task(anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter))
        _tasks.add(self._task)
        self._task.add_done_callback(_end)

    def join(self) -> bool:
        """Adds a caller, which must then await `answer`. Returns False if it is too late to join."""
        with self._guard:
            if self._closed or self._withdrawal.withdrawn or self._task.done():
                return False
            self._callers += 1
            self._shared = True
            return True

    def close(self) -> bool:
        """Refuses further callers; returns whether any has joined. Called in the thread that does the work."""
        with self._guard:
            self._closed = True
            return self._shared

    async def answer(self, progress: CallProgress | None = None) -> T:
        """Waits for the work and returns its result, or raises its exception; each caller awaits it once."""
        if progress is not None:
            self._progress.append(progress)
        try:
            # shield: cancelling one caller must not cancel the work for the others
            return await asyncio.shield(self._task)
        finally:
            if progress is not None:
                self._progress.remove(progress)
            with self._guard:
                self._callers -= 1
                if not self._callers:
                    # the work notices this before its next step
                    self._withdrawal.withdraw()


@contextmanager
def own_limits() -> Iterator[None]:
    """Gives the calls of this block limits of the same sizes for themselves: other clients do not wait for them."""
    token = _own.set({})
    try:
        yield
    finally:
        _own.reset(token)


def _limiter_of_client(limiter: anyio.CapacityLimiter) -> anyio.CapacityLimiter:
    own = _own.get()
    if own is None:
        return limiter
    if limiter not in own:
        own[limiter] = anyio.CapacityLimiter(limiter.total_tokens)
        _of_clients.add(own[limiter])
    return own[limiter]


class EqualCalls(Generic[T]):
    """The calls in progress that equal calls may join, by key."""

    def __init__(self) -> None:
        # weak: a finished call and its answer are freed with the thread and the callers
        self._calls: WeakValueDictionary[Hashable, WorkerCall[T]] = WeakValueDictionary()

    def joined(self, key: Hashable | None, begin: Callable[[], WorkerCall[T]]) -> WorkerCall[T]:
        """Joins the call in progress with this key, or begins a new one; None equals no key. Only in the event loop."""
        call = self._calls.get(key)
        if key is not None and call is not None and call.join():
            return call
        call = begin()
        if key is not None:
            self._calls[key] = call
        return call


def close_to_equal_calls() -> bool:
    """Stops further calls from joining the call of this thread; returns whether any has joined."""
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
    """Forgets a task, and retrieves its exception in case all callers have left."""
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()


_own: ContextVar[dict[anyio.CapacityLimiter, anyio.CapacityLimiter] | None] = ContextVar("own_limits", default=None)
_of_clients: WeakSet[anyio.CapacityLimiter] = WeakSet()
_call: ContextVar[WorkerCall[Any] | None] = ContextVar("call", default=None)
_tasks: set[asyncio.Task[Any]] = set()
"""Strong references, as the loop only keeps weak ones to tasks."""
