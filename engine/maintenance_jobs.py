"""What is done in the background, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speckit_memory.memory.lifecycle import archival, old_sessions
from speckit_memory.memory.store.file.connection import Connection, Transaction

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done in batches until nothing is left, each in a transaction of its own.

    `waiting` counts what is to be done at a time in epoch seconds, `batch` does a part of it and returns how much. What
    is done does not wait any more, so that a killed run is gone on with by any other.
    """

    name: str
    seconds: float
    """It is due so long after its last run."""
    what: str
    """What it counts."""
    waiting: Callable[[Connection, float], int]
    batch: Callable[[Transaction, float], int]


JOBS = (
    Job("sessions", HOUR, "sessions that are over forgotten", old_sessions.over, old_sessions.forget_over),
    Job("expiry", 2 * HOUR, "expired memories archived", archival.expired, archival.archive_expired),
    Job("archival", 2 * HOUR, "unused memories archived", archival.unused, archival.archive_unused),
)
"""In the order in which they run. The segment of the store is kept by `upkeep`, which writes no row."""
