"""Reviews of stored memories: how use and judgements change stability and difficulty (feature M2).

Opening or citing a served memory is a good review, the judgement "useful" an easy one, and "not useful" a failed one
(again). Serving a memory is not a review: otherwise answers would strengthen what they show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.lifecycle.fsrs import SECONDS_PER_DAY, retrievability
from speckit_memory.memory.lifecycle.scheduler import Grade, Strength, review_strength
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import UNKNOWN_TIME
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories import judgements
from speckit_memory.memory.store.tables.memories.judgements import ReviewState

USED = Grade.GOOD
USEFUL, NOT_USEFUL = Grade.EASY, Grade.AGAIN


class Review(NamedTuple):
    """A grade for how a memory served, and the time (epoch seconds)."""

    grade: Grade
    at: float


def review(txn: Transaction, reviews: Mapping[int, Review]) -> None:
    """Apply reviews, by memory id. Skips ids that are not stored (any more), and rows of a damaged store whose values
    are not numbers, which `doctor` reports.

    Uses of judged memories are recorded, so that they can be replayed when a judgement is undone; the caller records
    the judgements themselves.
    """
    # The table is STRICT: another type than REAL is found in a damaged file only.
    found = rows(
        txn.connection,
        "SELECT id, stability, difficulty, last_review, created_at FROM memories "
        "WHERE id IN (SELECT value FROM carray(?)) "
        "AND typeof(stability) = 'real' AND typeof(difficulty) = 'real' AND typeof(created_at) = 'real' "
        "AND typeof(coalesce(last_review, created_at)) = 'real' ORDER BY id",
        (integers(sorted(reviews)),),
    )
    used = judgements.memories_judged(txn.connection, [memory for memory, one in reviews.items() if one.grade is USED])
    changed = []
    for memory, stability, difficulty, last, created in found:
        after = _strength(Strength(stability, difficulty), last, reviews[memory], created)
        at = reviews[memory].at
        if memory in used and (before := judgements.regard(txn.connection, memory)) is not None:
            judgements.record(txn, memory, "used", at, before, _reviewed(before, after, at))
        if after is not None:
            changed.append((after.stability, after.difficulty, at, memory))
    txn.connection.executemany(
        "UPDATE memories SET stability = ?, difficulty = ?, last_review = ?, review_count = review_count + 1 "
        "WHERE id = ?",
        changed,
    )
    changes.record(txn, [row[-1] for row in changed], "attributes")


def reviewed_once(before: ReviewState, one: Review, created: float) -> ReviewState:
    """The state of a memory, created at `created` (epoch seconds), after a review."""
    strength = Strength(before.stability, before.difficulty)
    return _reviewed(before, _strength(strength, before.last_review, one, created), one.at)


def _strength(before: Strength, last: float | None, one: Review, created: float) -> Strength | None:
    """The strength after a review; None if the review does not count.

    FSRS v4 counts in days: a success within a day of the last review changes nothing. A failure always counts.
    """
    since = _days(one.at, created if last is None else last)
    if not (one.grade is Grade.AGAIN or last is None or abs(since) >= 1.0):
        return None
    # A clock set back gives negative days: nothing was forgotten then.
    left = retrievability(np.array([max(since, 0.0)]), np.array([before.stability]))
    return review_strength(before, one.grade, float(left[0]))


def _reviewed(before: ReviewState, after: Strength | None, at: float) -> ReviewState:
    if after is None:
        return before
    return before._replace(
        stability=after.stability, difficulty=after.difficulty, last_review=at, reviews=before.reviews + 1
    )


def stability(connection: Connection, memory: int) -> float:
    """The stability of a stored memory, in days."""
    days: float = value(connection, "SELECT stability FROM memories WHERE id = ?", (memory,))
    return days


def _days(at: float, since: float) -> float:
    """Days between two times; negative if a clock was set back, 0 if the earlier one is unknown."""
    return 0.0 if since == UNKNOWN_TIME else (at - since) / SECONDS_PER_DAY
