"""What was judged of memories, and what that made of them (features F17 and M2).

Each judgement and each promotion is a row, with who gave it and how the memory stood before and after. Uses of a memory
that was judged are rows too: whoever takes a judgement back lives through what came after it once more. Rows are marked
as taken back, never changed in what was said.

Of one memory the last `MOST_KEPT` rows are kept. Uses that changed nothing go first, so that a memory which is read all
day keeps its judgements; what is gone counts on, and cannot be taken back any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.file.schema.learning_schema import UNATTRIBUTED
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables import changes

MOST_KEPT = 200
"""Rows that are kept of one memory: as many days of use, since one use a day counts, or judgements."""

Kind = Literal["useful", "not useful", "promoted", "used"]


class Regard(NamedTuple):
    """What judgements and reviews move: how far a memory is trusted, and how well it is kept. `last_review` is in epoch
    seconds, `stability` in days."""

    confidence: float
    validations: int
    stability: float
    difficulty: float
    last_review: float | None
    reviews: int


class Judgement(NamedTuple):
    """What was said of a memory at `at` (epoch seconds), by which session ("" where nobody said), and how the memory
    stood `before` and `after` that.

    One that was taken back, at `undone_at`, tells what it had done until then; those after it what they do without it.
    """

    id: int
    memory: int
    key: str
    kind: Kind
    at: float
    session: str
    before: Regard
    after: Regard
    declared: str
    """Of a promotion, the tier that the document of the memory declares now; else ""."""
    undone_at: float | None


_MEMORY = "confidence, validation_count, stability, difficulty, last_review, review_count"
_BEFORE = "confidence_before, validations_before, stability_before, difficulty_before, reviewed_before, reviews_before"
_AFTER = "confidence, validations, stability, difficulty, reviewed, reviews"
_NUMBERS = " AND ".join(
    f"typeof({column}) = '{kind}'"
    for column, kind in zip(
        ("confidence", "validation_count", "stability", "difficulty", "coalesce(last_review, 0.0)", "review_count"),
        ("real", "integer", "real", "real", "real", "integer"),
        strict=True,
    )
)
_LIVE_PROMOTION = "kind = 'promoted' AND undone_at IS NULL"
_TRIM = f"""
DELETE FROM judgements WHERE id IN (
    SELECT id FROM judgements WHERE memory_id = ?1 AND NOT ({_LIVE_PROMOTION})
    ORDER BY kind = 'used' AND reviews = reviews_before DESC, id
    LIMIT max(0, (SELECT count(*) FROM judgements WHERE memory_id = ?1) - ?2)
)
"""


def regard(connection: apsw.Connection, memory: int) -> Regard | None:
    """How a stored memory stands; None where its row of a damaged store holds no numbers."""
    found = rows(connection, f"SELECT {_MEMORY} FROM memories WHERE id = ? AND {_NUMBERS}", (memory,))
    return Regard(*found[0]) if found else None


def put_regard(txn: Transaction, memory: int, now: Regard) -> None:
    """Has a memory stand so."""
    places = ", ".join(f"{column} = ?" for column in _MEMORY.split(", "))
    txn.connection.execute(f"UPDATE memories SET {places} WHERE id = ?", (*now, memory))
    changes.record(txn, [memory], "attributes")


def record(
    txn: Transaction,
    memory: int,
    kind: Kind,
    at: float,
    before: Regard,
    after: Regard,
    *,
    session: str = "",
    declared: str = "",
) -> None:
    """Writes what was said of a memory, and forgets the oldest of it."""
    txn.connection.execute(
        f"INSERT INTO judgements (memory_id, kind, judged_at, session, declared, {_BEFORE}, {_AFTER}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (memory, kind, at, session, declared, *before, *after),
    )
    txn.connection.execute(_TRIM, (memory, MOST_KEPT))


def judged(connection: apsw.Connection, memories: Collection[int]) -> frozenset[int]:
    """Which of these memories have a judgement that may be taken back, so that their uses are kept as well."""
    found = rows(
        connection,
        "SELECT DISTINCT memory_id FROM judgements WHERE memory_id IN (SELECT value FROM carray(?)) "
        "AND kind IN ('useful', 'not useful') AND undone_at IS NULL",
        (integers(sorted(memories)),),
    )
    return frozenset(memory for (memory,) in found)


def judgements(
    connection: apsw.Connection, *, memory: int | None = None, session: str = "", limit: int = -1
) -> list[Judgement]:
    """Judgements and promotions, last first: of one memory or by one session, where these are given. A negative `limit`
    is none."""
    return _read(
        connection,
        "j.kind <> 'used' AND (?1 IS NULL OR j.memory_id = ?1) AND (?2 = '' OR j.session = ?2) "
        "ORDER BY j.id DESC LIMIT ?3",
        (memory, session, limit),
    )


def numbered(connection: apsw.Connection, numbers: Sequence[int]) -> dict[int, Judgement]:
    """Those of these judgements and promotions that there are, by their numbers."""
    found = _read(
        connection, "j.kind <> 'used' AND j.id IN (SELECT value FROM carray(?)) ORDER BY j.id", (integers(numbers),)
    )
    return {one.id: one for one in found}


def since(connection: apsw.Connection, memory: int, first: int) -> list[Judgement]:
    """What was said of a memory and how it was used, from the row of this number on, but for what was taken back."""
    return _read(connection, "j.memory_id = ? AND j.id >= ? AND j.undone_at IS NULL ORDER BY j.id", (memory, first))


def take_back(txn: Transaction, numbers: Iterable[int], now: float) -> None:
    """Notes that these were taken back at `now`."""
    txn.connection.executemany(
        "UPDATE judgements SET undone_at = ? WHERE id = ?", [(now, number) for number in numbers]
    )


def correct(txn: Transaction, number: int, before: Regard, after: Regard) -> None:
    """Notes what one does after another before it was taken back."""
    places = ", ".join(f"{column} = ?" for column in f"{_BEFORE}, {_AFTER}".split(", "))
    txn.connection.execute(f"UPDATE judgements SET {places} WHERE id = ?", (*before, *after, number))


def declare(txn: Transaction, memory: int, tier: Tier) -> None:
    """Notes which tier the document of a memory declares now, to which the memory returns without its promotion."""
    txn.connection.execute(
        f"UPDATE judgements SET declared = ?1 WHERE memory_id = ?2 AND {_LIVE_PROMOTION} AND declared <> ?1",
        (str(tier), memory),
    )


def declared(connection: apsw.Connection, memory: int) -> str | None:
    """The tier that the document of a promoted memory declares; None for one that was not promoted."""
    found: str | None = value(
        connection, f"SELECT declared FROM judgements WHERE memory_id = ? AND {_LIVE_PROMOTION}", (memory,)
    )
    return found


def attribute(txn: Transaction) -> None:
    """Notes promotions that came without, from a store of before judgements were kept."""
    txn.connection.execute(UNATTRIBUTED)


def _read(connection: apsw.Connection, condition: str, parameters: tuple[object, ...]) -> list[Judgement]:
    columns = ", ".join(f"j.{column}" for column in f"{_BEFORE}, {_AFTER}".split(", "))
    found = rows(
        connection,
        f"SELECT j.id, j.memory_id, m.key, j.kind, j.judged_at, j.session, j.declared, j.undone_at, {columns} "
        f"FROM judgements j JOIN memories m ON m.id = j.memory_id WHERE {condition}",
        parameters,
    )
    return [
        Judgement(number, memory, key, kind, at, session, Regard(*stood[:6]), Regard(*stood[6:]), tier, undone_at)
        for number, memory, key, kind, at, session, tier, undone_at, *stood in found
    ]
