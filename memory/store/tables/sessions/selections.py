"""Learning from selections: the recorded selections, the phrases learned from them, and those a user removed (feature
M12).

Learned phrases are rows of `triggers` with the source `learned`: separate from the phrases that documents
declare, not in the full-text index, and with an expiry.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from speckit_memory.memory.store.evaluation.records import Use
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.tables import changes

WEIGHT = 0.7
"""Weight of a learned phrase; one that a document declares has 1."""

Outcome = Literal["shadow", "learned", "reinforced", "refused"]


class Selection(NamedTuple):
    """A query and a memory that its reader used. Times are epoch seconds; `reason` says why learning was refused."""

    query: str
    memory: int
    use: Use
    rank: int
    selected_at: float
    noted_at: float
    outcome: Outcome
    reason: str
    terms: tuple[str, ...]


class LearnedPhrase(NamedTuple):
    """A phrase of a memory until `expires_at` (epoch seconds), and the selections it was learned from, by time."""

    memory: int
    key: str
    phrase: str
    learned_at: float
    expires_at: float
    taught_by: tuple[Selection, ...] = ()


class SelectionCount(NamedTuple):
    """Number of recorded (query, memory) pairs, and the time of the first (None without any)."""

    pairs: int
    first_at: float | None


def note(txn: Transaction, selection: Selection) -> None:
    """Records a selection; each (query, memory) pair once."""
    txn.connection.execute(
        "INSERT OR IGNORE INTO selections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*selection[:-1], json.dumps(selection.terms, ensure_ascii=False)),
    )


def known(connection: Connection, since: float) -> set[tuple[str, int]]:
    """The recorded (query, memory) pairs selected since a time (epoch seconds)."""
    found = rows(connection, 'SELECT "query", memory_id FROM selections WHERE selected_at >= ?', (since,))
    return {(query, memory) for query, memory in found}


def seen(connection: Connection) -> SelectionCount:
    """The number and first time of recorded selections."""
    [(pairs, first)] = rows(connection, "SELECT count(*), min(noted_at) FROM selections")
    return SelectionCount(pairs, first)


def phrases_of(connection: Connection, memory: int) -> dict[str, str]:
    """The normalised phrases of a memory, each with "authored", "learned" or "unlearned"."""
    # dict() keeps the last of equal phrases: authored before learned before unlearned, since column 2 descends
    found = rows(
        connection,
        "SELECT normalised, 'unlearned' FROM unlearned WHERE memory_id = ?1 UNION ALL "
        "SELECT normalised, source FROM triggers WHERE memory_id = ?1 ORDER BY 2 DESC",
        (memory,),
    )
    return dict(found)


def learn(txn: Transaction, memory: int, phrase: str, now: float, expires_at: float) -> None:
    """Adds a learned phrase to a memory, or extends its life.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        phrase: The phrase in normalised form.
        now: The time, in epoch seconds.
        expires_at: The end of its life, in epoch seconds; an earlier end than the stored one is ignored.
    """
    txn.connection.execute(
        "INSERT INTO triggers (memory_id, source, normalised, phrase, ordinal, weight, created_at, expires_at) "
        "VALUES (?1, 'learned', ?2, ?2, 0, ?3, ?4, ?5) "
        "ON CONFLICT DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)",
        (memory, phrase, WEIGHT, now, expires_at),
    )
    changes.record(txn, [memory], "put")  # "put", since triggers are reread together with documents


def unlearn(txn: Transaction, memory: int, phrase: str, now: float) -> None:
    """Removes a learned phrase of a memory for good: later selections do not teach it again.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        phrase: The phrase in normalised form.
        now: The time, in epoch seconds.
    """
    where = "WHERE memory_id = ? AND normalised = ?"
    txn.connection.execute(f"DELETE FROM triggers {where} AND source = 'learned'", (memory, phrase))
    txn.connection.execute("INSERT OR REPLACE INTO unlearned VALUES (?, ?, ?)", (memory, phrase, now))
    changes.record(txn, [memory], "put")


def drop_expired(txn: Transaction, now: float) -> int:
    """Deletes learned phrases that expired before `now`, which searches ignore anyway; returns their number."""
    gone = rows(
        txn.connection, "DELETE FROM triggers WHERE source = 'learned' AND expires_at < ? RETURNING memory_id", (now,)
    )
    if gone:
        changes.record(txn, sorted({memory for (memory,) in gone}), "put")
    return len(gone)


def count_expired(connection: Connection, now: float) -> int:
    """Number of learned phrases that expired before `now`."""
    found = value(connection, "SELECT count(*) FROM triggers WHERE source = 'learned' AND expires_at < ?", (now,))
    return int(found or 0)


def learned_phrases(connection: Connection, now: float) -> list[LearnedPhrase]:
    """The learned phrases not expired at `now`, by key and phrase."""
    taught: dict[tuple[int, str], list[Selection]] = {}
    # taught: selections by (memory, phrase); the phrases of a selection are a JSON list in its last column
    for *facts, terms in rows(
        connection, "SELECT * FROM selections WHERE outcome IN ('learned', 'reinforced') ORDER BY selected_at"
    ):
        selection = Selection._make((*facts, tuple(json.loads(terms))))
        for term in selection.terms:
            taught.setdefault((selection.memory, term), []).append(selection)
    found = rows(
        connection,
        "SELECT t.memory_id, m.key, t.normalised, t.created_at, t.expires_at FROM triggers t "
        "JOIN memories m ON m.id = t.memory_id WHERE t.source = 'learned' AND t.expires_at >= ? "
        "ORDER BY m.key, t.normalised",
        (now,),
    )
    return [LearnedPhrase._make((*row, tuple(taught.get((row[0], row[2]), ())))) for row in found]
