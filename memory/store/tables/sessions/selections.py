"""What selections taught: which were seen, what was learned from each, and what a user has taken back (feature M12).

What is learned lies in `triggers` with the source `learned`: apart from the phrases that documents declare, outside of
the full-text index, and with a time at which it ends.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

import apsw

from speckit_memory.memory.store.evaluation.records import Use
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.tables import changes

WEIGHT = 0.7
"""Of a learned phrase beside 1 of one that a document declares."""

Outcome = Literal["shadow", "learned", "reinforced", "refused"]


class Selection(NamedTuple):
    """A query and a memory that its reader used. Times are epoch seconds; `reason` says why it was refused."""

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
    """A phrase that counts for a memory until it ends (epoch seconds), and the selections that taught it, by time."""

    memory: int
    key: str
    phrase: str
    learned_at: float
    expires_at: float
    taught_by: tuple[Selection, ...] = ()


class Seen(NamedTuple):
    """How many pairs of a query and a memory are on record, and since when (None without any)."""

    pairs: int
    first_at: float | None


def note(txn: Transaction, selection: Selection) -> None:
    """Puts a selection on record; each pair once."""
    txn.connection.execute(
        "INSERT OR IGNORE INTO selections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*selection[:-1], json.dumps(selection.terms, ensure_ascii=False)),
    )


def known(connection: apsw.Connection, since: float) -> set[tuple[str, int]]:
    """The pairs on record that were selected since a time."""
    found = rows(connection, 'SELECT "query", memory_id FROM selections WHERE selected_at >= ?', (since,))
    return {(query, memory) for query, memory in found}


def seen(connection: apsw.Connection) -> Seen:
    """How much has been seen."""
    [(pairs, first)] = rows(connection, "SELECT count(*), min(noted_at) FROM selections")
    return Seen(pairs, first)


def phrases_of(connection: apsw.Connection, memory: int) -> dict[str, str]:
    """The phrases of a memory in their compared form, and whether each is authored or learned, or was unlearned."""
    found = rows(
        connection,
        "SELECT normalised, 'unlearned' FROM unlearned WHERE memory_id = ?1 UNION ALL "
        "SELECT normalised, source FROM triggers WHERE memory_id = ?1 ORDER BY 2 DESC",
        (memory,),
    )
    return dict(found)


def learn(txn: Transaction, memory: int, phrase: str, now: float, expires_at: float) -> None:
    """Has a phrase in its compared form count for a memory, or count longer."""
    txn.connection.execute(
        "INSERT INTO triggers (memory_id, source, normalised, phrase, ordinal, weight, created_at, expires_at) "
        "VALUES (?1, 'learned', ?2, ?2, 0, ?3, ?4, ?5) "
        "ON CONFLICT DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)",
        (memory, phrase, WEIGHT, now, expires_at),
    )
    changes.record(txn, [memory], "put")  # triggers are read anew with what documents say


def unlearn(txn: Transaction, memory: int, phrase: str, now: float) -> None:
    """Takes a learned phrase of a memory away, for good: no later selection teaches it again."""
    where = "WHERE memory_id = ? AND normalised = ?"
    txn.connection.execute(f"DELETE FROM triggers {where} AND source = 'learned'", (memory, phrase))
    txn.connection.execute("INSERT OR REPLACE INTO unlearned VALUES (?, ?, ?)", (memory, phrase, now))
    changes.record(txn, [memory], "put")


def drop_expired(txn: Transaction, now: float) -> int:
    """Removes learned phrases that ended before `now`, which no search reads any more; returns how many."""
    gone = rows(
        txn.connection, "DELETE FROM triggers WHERE source = 'learned' AND expires_at < ? RETURNING memory_id", (now,)
    )
    if gone:
        changes.record(txn, sorted({memory for (memory,) in gone}), "put")
    return len(gone)


def expired(connection: apsw.Connection, now: float) -> int:
    """How many learned phrases ended before `now`."""
    found = value(connection, "SELECT count(*) FROM triggers WHERE source = 'learned' AND expires_at < ?", (now,))
    return int(found or 0)


def learned(connection: apsw.Connection, now: float) -> list[LearnedPhrase]:
    """The learned phrases that count at `now`, by key and phrase."""
    taught: dict[tuple[int, str], list[Selection]] = {}
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
