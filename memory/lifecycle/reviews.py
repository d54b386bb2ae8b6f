"""Reviews of stored memories: what use and judgements do to how long they are kept in mind (feature M2).

Whoever opens or cites what was served has reviewed it well (good); who says that it was useful, more than that (easy);
who says that it was not has found it failing (again). To be served alone is no review: an answer would strengthen what
it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.lifecycle.fsrs import SECONDS_PER_DAY, retrievability
from speckit_memory.memory.lifecycle.scheduler import Grade, Strength, reviewed
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.queries import integers, rows, value
from speckit_memory.memory.store.records import UNKNOWN_TIME
from speckit_memory.memory.store.tables import changes

USED = Grade.GOOD
USEFUL, NOT_USEFUL = Grade.EASY, Grade.AGAIN


class Review(NamedTuple):
    """How a memory served, and when (epoch seconds)."""

    grade: Grade
    at: float


def review(txn: Transaction, reviews: Mapping[int, Review]) -> None:
    """Writes reviews, by memory id; ids that are not stored (any more) are passed over, and so are rows of a damaged
    store that hold no numbers, of which `doctor` tells.

    FSRS v4 counts in days: a success within a day of the last review changes nothing. A failure always counts.
    """
    found = rows(
        txn.connection,
        "SELECT id, stability, difficulty, last_review, created_at FROM memories "
        "WHERE id IN (SELECT value FROM carray(?)) "
        "AND typeof(stability) = 'real' AND typeof(difficulty) = 'real' AND typeof(created_at) = 'real' "
        "AND typeof(coalesce(last_review, created_at)) = 'real' ORDER BY id",
        (integers(sorted(reviews)),),
    )
    days = np.array(
        [_days(reviews[memory].at, created if last is None else last) for memory, *_, last, created in found]
    )
    recalled = retrievability(np.maximum(days, 0.0), np.array([stability for _, stability, *_ in found]))
    changed = []
    for (memory, stability, difficulty, last, _), since, left in zip(found, days, recalled, strict=True):
        grade, at = reviews[memory]
        if grade is Grade.AGAIN or last is None or abs(since) >= 1.0:
            after = reviewed(Strength(stability, difficulty), grade, float(left))
            changed.append((after.stability, after.difficulty, at, memory))
    txn.connection.executemany(
        "UPDATE memories SET stability = ?, difficulty = ?, last_review = ?, review_count = review_count + 1 "
        "WHERE id = ?",
        changed,
    )
    changes.record(txn, [row[-1] for row in changed], "attributes")


def stability(connection: Connection, memory: int) -> float:
    """The stability of a stored memory, in days."""
    days: float = value(connection, "SELECT stability FROM memories WHERE id = ?", (memory,))
    return days


def _days(at: float, since: float) -> float:
    """Days between two times; negative where a clock was set back, 0 where nobody knows the earlier one."""
    return 0.0 if since == UNKNOWN_TIME else (at - since) / SECONDS_PER_DAY
