"""The clock of queries: it stops while its thread loads resources that later queries find in memory.

Loading reads parts of the store and of models. It happens once, and its time says nothing about the query, so
deadlines, budgets and timings of searches use this clock. Waiting for another thread that is loading counts as loading.
A search runs in one thread from its first step to its last; each thread has its own clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns


class _Openings(threading.local):
    """The time one thread has spent on loading, and when the current loading began; `depth` counts nested calls."""

    depth = 0
    began_ns = 0
    spent_ns = 0


_openings = _Openings()


def query_ns() -> int:
    """A monotonic reading in nanoseconds, without the time this thread has spent on loading."""
    now = _openings.began_ns if _openings.depth else perf_counter_ns()
    return now - _openings.spent_ns


def opening_ns() -> int:
    """The nanoseconds that this thread has spent on loading so far."""
    return _openings.spent_ns + (perf_counter_ns() - _openings.began_ns if _openings.depth else 0)


@contextmanager
def opening() -> Iterator[None]:
    """Excludes the block, including waits for locks, from the time of the query."""
    if not _openings.depth:
        _openings.began_ns = perf_counter_ns()
    _openings.depth += 1
    try:
        yield
    finally:
        _openings.depth -= 1
        if not _openings.depth:
            _openings.spent_ns += perf_counter_ns() - _openings.began_ns
