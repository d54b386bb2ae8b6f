"""The server's end of isolated extensions: one process for all, restarted on demand, used by one thread at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Any

from speckit_memory.pipeline.isolation.codec import Handle
from speckit_memory.pipeline.isolation.limits import (
    LEAST_SECONDS,
    LOAD_SECONDS,
    LONGEST_SECONDS,
    STARTS,
    STARTS_WITHIN_SECONDS,
)
from speckit_memory.pipeline.isolation.process import Message, Process
from speckit_memory.pipeline.isolation.remote_store import StoreServer
from speckit_memory.pipeline.isolation.wire import Remaining
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.errors import IsolatedFailureError, NotStartedError
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import opening, query_ns


class Host:
    """Shared by all threads and pipelines of a server. Raises IsolatedFailureError if there is no answer."""

    def __init__(self, memory_mb: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`memory_mb` limits the address space of the process, 0: no limit; `clock` (seconds) limits its restarts."""
        self._memory_mb = memory_mb
        self._clock = clock
        self._starting = Lock()
        self._process: Process | None = None
        self._begun: deque[float] = deque(maxlen=STARTS)
        self._loaded: list[tuple[str, str]] = []
        self._numbers = count(1)

    @property
    def pid(self) -> int | None:
        """The id of the running process, None if there is none."""
        process = self._process
        return None if process is None or process.ended else process.pid

    def number(self) -> int:
        """The number of a new component; it stays valid when the process is restarted."""
        return next(self._numbers)

    def load(self, name: str, value: str) -> tuple[list[str], list[str]]:
        """Imports an entry point and lets it add its components and flags; returns their descriptions as JSON texts."""
        found: tuple[list[str], list[str]] = _value(
            self._asked(("load", name, value), LOAD_SECONDS, _countdown(LOAD_SECONDS))
        )
        self._loaded.append((name, value))
        return found

    def call(
        self, use: str, recipe: str, number: int, method: str, arguments: Sequence[Any], store: Store | None
    ) -> Any:
        """The answer of a component, as plain data that is shared with no other code.

        Waits until the deadline of the query among the arguments, but at least `LEAST_SECONDS` and at most
        `LONGEST_SECONDS`.

        Args:
            use: Name of the component.
            recipe: Its parameters, see `ForeignParams.recipe`.
            number: Number of the component, from `number()`.
            method: The method of its role to call.
            arguments: Arguments of the method without the store; one of them is the query.
            store: The store that is passed as the last argument; None if the method takes none.

        Raises:
            IsolatedFailureError: If the component or its process fails or does not answer in time.
        """
        query = next(argument for argument in arguments if isinstance(argument, Query))
        left = None if query.deadline_ns is None else query.deadline_ns - query_ns()
        seconds = LONGEST_SECONDS if left is None else min(max(left / 1e9, LEAST_SECONDS), LONGEST_SECONDS)
        # The clocks of two processes differ: the deadline is sent as the time left, and added to the other clock
        # there.
        sent = [replace(argument, deadline_ns=left) if argument is query else argument for argument in arguments]
        if store is not None:
            sent.append(Handle("Store", 0))
        # the query's clock stops while the store loads something for the component
        remaining = _countdown(seconds, query_ns)
        return _value(self._asked(("call", use, recipe, number, method, tuple(sent)), seconds, remaining, store))

    def ask(self, what: str, *arguments: Any) -> Message:
        """The answer of the process to a request that does not need a store."""
        return self._asked((what, *arguments), LONGEST_SECONDS, _countdown(LONGEST_SECONDS))

    def _asked(self, request: Message, seconds: float, remaining: Remaining, store: Store | None = None) -> Message:
        while (left := remaining()) > 0:
            # The process may have ended while this thread waited for its turn: then start another one.
            process = self._ready()
            if not process.turn.acquire(timeout=left):
                break
            try:
                if process.alive:
                    return process.ask(request, seconds, remaining, StoreServer(store))
            finally:
                process.turn.release()
        raise IsolatedFailureError(f"its process was busy with other searches for {seconds * 1000:.0f} ms")

    def _ready(self) -> Process:
        """The running process, or a new one with all extensions loaded. Starting does not count as query time."""
        # Order of locks: `_starting`, then that of the process for its end. `turn` is never taken with `_starting`
        # held.
        with opening(), self._starting:
            if self._process is None or not self._process.alive:
                self._process = self._started()
            return self._process

    def _started(self) -> Process:
        now = self._clock()
        if len(self._begun) == STARTS and now - self._begun[0] < STARTS_WITHIN_SECONDS:
            wait = STARTS_WITHIN_SECONDS - (now - self._begun[0])
            raise NotStartedError(
                f"its process ended {STARTS} times within {STARTS_WITHIN_SECONDS:.0f} seconds "
                f"and will not be restarted for another {max(wait, 1):.0f}"
            )
        self._begun.append(now)
        process = Process(self._memory_mb)
        # without `turn`, since no other thread knows this process yet
        for name, value in self._loaded:
            state, *_ = process.ask(("load", name, value), LOAD_SECONDS, _countdown(LOAD_SECONDS), StoreServer(None))
            if state != "value":
                process.end()
                raise IsolatedFailureError(f"the extension '{name}' could not be loaded again")
        return process

    def end(self) -> None:
        """Ends the process, if there is one; the next request starts another."""
        if self._process is not None:
            self._process.end()


def _value(answer: Message) -> Any:
    state, value = answer
    if state != "value":
        raise IsolatedFailureError(str(value))
    return value


def _countdown(seconds: float, clock: Callable[[], int] = time.monotonic_ns) -> Remaining:
    """A function that returns the seconds left, counted from now by this clock."""
    began = clock()
    return lambda: seconds - (clock() - began) / 1e9
