"""The clock of queries: it stands still while its thread opens what later queries find in memory.

Opening is reading parts of the store and loading models. It is done once, and how long it takes says nothing about the
question, so deadlines, budgets and timings of searches are told by this clock. To wait until another thread has opened
something is opening too. A search runs in one thread from its first step to its last; each thread has its own clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns


class _Openings(threading.local):
    """What one thread has spent on opening, and since when it does so now; `depth` counts openings inside others."""

    depth = 0
    began_ns = 0
    spent_ns = 0


_openings = _Openings()


def query_ns() -> int:
    """A monotonic reading in nanoseconds, without what this thread has spent on opening."""
    now = _openings.began_ns if _openings.depth else perf_counter_ns()
    return now - _openings.spent_ns


def opening_ns() -> int:
    """The nanoseconds that this thread has spent on opening so far."""
    return _openings.spent_ns + (perf_counter_ns() - _openings.began_ns if _openings.depth else 0)


@contextmanager
def opening() -> Iterator[None]:
    """What happens inside, waiting for locks included, is not the query's own time."""
    if not _openings.depth:
        _openings.began_ns = perf_counter_ns()
    _openings.depth += 1
    try:
        yield
    finally:
        _openings.depth -= 1
        if not _openings.depth:
            _openings.spent_ns += perf_counter_ns() - _openings.began_ns
