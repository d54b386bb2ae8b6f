"""Judgements of memories and their effects (features F17 and M2).

Each judgement and each promotion is a row, with its session and the memory's review state before and after. Uses of a
judged memory are rows too, because undoing a judgement replays the later rows. Undone rows are marked, not deleted.

The last `MOST_KEPT` rows of a memory are kept. Uses without an effect are deleted first, so that a memory that is read
all day keeps its judgements. Deleted rows keep their effect and can no longer be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.file.schema.learning_schema import UNATTRIBUTED
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables import changes

MOST_KEPT = 200
"""Number of rows kept per memory: judgements, or days of use, since one use a day counts."""

Kind = Literal["useful", "not useful", "promoted", "used"]


class ReviewState(NamedTuple):
    """A memory's review state, which judgements and reviews change: its confidence and its spaced-repetition values.
    `last_review` is in epoch seconds, `stability` in days."""

    confidence: float
    validations: int
    stability: float
    difficulty: float
    last_review: float | None
    reviews: int


class Judgement(NamedTuple):
    """A judgement of a memory at `at` (epoch seconds) by a session ("" where unknown), with the memory's review state
    `before` and `after` it.

    If it was undone, at `undone_at`, the states are those until then; the states of later judgements exclude it.
    """

    id: int
    memory: int
    key: str
    kind: Kind
    at: float
    session: str
    before: ReviewState
    after: ReviewState
    declared: str
    """For a promotion, the tier that the memory's document declares now; else ""."""
    undone_at: float | None


_MEMORY = "confidence, validation_count, stability, difficulty, last_review, review_count"
_BEFORE = "confidence_before, validations_before, stability_before, difficulty_before, reviewed_before, reviews_before"
_AFTER = "confidence, validations, stability, difficulty, reviewed, reviews"
# The table is STRICT: values of another type are found in a damaged file only.
_NUMBERS = " AND ".join(
    f"typeof({column}) = '{kind}'"
    for column, kind in zip(
        ("confidence", "validation_count", "stability", "difficulty", "coalesce(last_review, 0.0)", "review_count"),
        ("real", "integer", "real", "real", "real", "integer"),
        strict=True,
    )
)
_LIVE_PROMOTION = "kind = 'promoted' AND undone_at IS NULL"
# Beyond the limit ?2, uses that changed nothing go first (DESC sorts true before false), then the oldest rows.
_TRIM = f"""
DELETE FROM judgements WHERE id IN (
    SELECT id FROM judgements WHERE memory_id = ?1 AND NOT ({_LIVE_PROMOTION})
    ORDER BY kind = 'used' AND reviews = reviews_before DESC, id
    LIMIT max(0, (SELECT count(*) FROM judgements WHERE memory_id = ?1) - ?2)
)
"""


def regard(connection: Connection, memory: int) -> ReviewState | None:
    """The review state of a memory; None if it is missing, or if its row in a damaged store does not hold numbers."""
    found = rows(connection, f"SELECT {_MEMORY} FROM memories WHERE id = ? AND {_NUMBERS}", (memory,))
    return ReviewState(*found[0]) if found else None


def put_regard(txn: Transaction, memory: int, now: ReviewState) -> None:
    """Sets the review state of a memory and logs the change."""
    places = ", ".join(f"{column} = ?" for column in _MEMORY.split(", "))
    txn.connection.execute(f"UPDATE memories SET {places} WHERE id = ?", (*now, memory))
    changes.record(txn, [memory], "attributes")


def record(
    txn: Transaction,
    memory: int,
    kind: Kind,
    at: float,
    before: ReviewState,
    after: ReviewState,
    *,
    session: str = "",
    declared: str = "",
) -> None:
    """Records a judgement, promotion or use, and deletes the memory's rows beyond `MOST_KEPT`.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        kind: The kind of row.
        at: The time, in epoch seconds.
        before: The review state before.
        after: The review state after.
        session: The session that gave it; "" where unknown.
        declared: For a promotion, the tier that the document declares; else "".
    """
    txn.connection.execute(
        f"INSERT INTO judgements (memory_id, kind, judged_at, session, declared, {_BEFORE}, {_AFTER}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (memory, kind, at, session, declared, *before, *after),
    )
    txn.connection.execute(_TRIM, (memory, MOST_KEPT))


def memories_judged(connection: Connection, memories: Collection[int]) -> frozenset[int]:
    """The memories among these with a judgement that can be undone, so that their uses must be recorded too."""
    found = rows(
        connection,
        "SELECT DISTINCT memory_id FROM judgements WHERE memory_id IN (SELECT value FROM carray(?)) "
        "AND kind IN ('useful', 'not useful') AND undone_at IS NULL",
        (integers(sorted(memories)),),
    )
    return frozenset(memory for (memory,) in found)


def judgements(
    connection: Connection, *, memory: int | None = None, session: str = "", limit: int = -1
) -> list[Judgement]:
    """Judgements and promotions, latest first.

    Args:
        connection: A connection to the store.
        memory: Only those of this memory; None for all.
        session: Only those by this session; "" for all.
        limit: Maximum number; negative for no limit.
    """
    return _read(
        connection,
        "j.kind <> 'used' AND (j.memory_id = ?1 OR ?1 IS NULL) AND (?2 = '' OR j.session = ?2) "
        "ORDER BY j.id DESC LIMIT ?3",
        (memory, session, limit),
    )


def judgements_by_number(connection: Connection, numbers: Sequence[int]) -> dict[int, Judgement]:
    """The existing judgements and promotions with these numbers, by number."""
    found = _read(
        connection, "j.kind <> 'used' AND j.id IN (SELECT value FROM carray(?)) ORDER BY j.id", (integers(numbers),)
    )
    return {one.id: one for one in found}


def since(connection: Connection, memory: int, first: int) -> list[Judgement]:
    """The rows of a memory from the number `first` on, uses included, undone ones excluded."""
    return _read(connection, "j.memory_id = ? AND j.id >= ? AND j.undone_at IS NULL ORDER BY j.id", (memory, first))


def take_back(txn: Transaction, numbers: Iterable[int], now: float) -> None:
    """Marks rows as undone at `now` (epoch seconds)."""
    txn.connection.executemany(
        "UPDATE judgements SET undone_at = ? WHERE id = ?", [(now, number) for number in numbers]
    )


def correct(txn: Transaction, number: int, before: ReviewState, after: ReviewState) -> None:
    """Replaces the states of a judgement, after an earlier one was undone.

    Args:
        txn: The transaction.
        number: Number of the judgement.
        before: The review state before it, without the undone one.
        after: The review state after it.
    """
    places = ", ".join(f"{column} = ?" for column in f"{_BEFORE}, {_AFTER}".split(", "))
    txn.connection.execute(f"UPDATE judgements SET {places} WHERE id = ?", (*before, *after, number))


def declare(txn: Transaction, memory: int, tier: Tier) -> None:
    """Records the tier that a memory's document declares now, to which undoing its promotion returns."""
    txn.connection.execute(
        f"UPDATE judgements SET declared = ?1 WHERE memory_id = ?2 AND {_LIVE_PROMOTION} AND declared <> ?1",
        (str(tier), memory),
    )


def declared_tier(connection: Connection, memory: int) -> str | None:
    """The tier that the document of a promoted memory declares; None for a memory without a promotion."""
    found: str | None = value(
        connection, f"SELECT declared FROM judgements WHERE memory_id = ? AND {_LIVE_PROMOTION}", (memory,)
    )
    return found


def attribute(txn: Transaction) -> None:
    """Adds rows for promotions that have none, since they come from a store without judgements."""
    txn.connection.execute(UNATTRIBUTED)


def _read(connection: Connection, condition: str, parameters: tuple[object, ...]) -> list[Judgement]:
    columns = ", ".join(f"j.{column}" for column in f"{_BEFORE}, {_AFTER}".split(", "))
    found = rows(
        connection,
        f"SELECT j.id, j.memory_id, m.key, j.kind, j.judged_at, j.session, j.declared, j.undone_at, {columns} "
        f"FROM judgements j JOIN memories m ON m.id = j.memory_id WHERE {condition}",
        parameters,
    )
    return [
        Judgement(
            number, memory, key, kind, at, session, ReviewState(*stood[:6]), ReviewState(*stood[6:]), tier, undone_at
        )
        for number, memory, key, kind, at, session, tier, undone_at, *stood in found
    ]
