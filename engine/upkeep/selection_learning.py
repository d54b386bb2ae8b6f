"""The background job that learns trigger phrases from selections (feature M12).

Reads the recorded texts of questions (`evaluation: {keep_texts: …}`) and no other source: without recorded texts,
nothing is learned.
"""

from __future__ import annotations

from pathlib import Path

from speckit_memory.engine.answers.query_syntax import read
from speckit_memory.memory.intake.secrets import redact
from speckit_memory.memory.lifecycle import learned_triggers
from speckit_memory.memory.lifecycle.learned_triggers import TTL_SECONDS
from speckit_memory.memory.store.evaluation.attribution import SelectionEvent
from speckit_memory.memory.store.evaluation.database import read_if_there
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.tables.sessions import selections

BATCH = 50


def waiting(connection: Connection, now: float) -> int:
    """The number of selections to learn from, and of learned phrases that ended before `now` (epoch seconds)."""
    return len(_new(connection, now)) + selections.count_expired(connection, now)


def learn(txn: Transaction, now: float) -> int:
    """Learns from one batch, oldest first, and deletes ended phrases; returns the number processed."""
    dropped = selections.drop_expired(txn, now)
    new = _new(txn.connection, now)[:BATCH]
    for selected in new:
        learned_triggers.learn(txn, selected, words_of(selected.text), now)
    return dropped + len(new)


def words_of(question: str) -> tuple[str, ...]:
    """The words of a typed question that could be learned; none if it contains a secret."""
    if "(redacted " in question or redact(question, addresses=True)[1]:
        return ()
    return learned_triggers.terms(read(question).text)


def _new(connection: Connection, now: float) -> list[SelectionEvent]:
    """Selections within the lifetime of a learned phrase that are not processed yet, each pair once, oldest first.

    Questions older than the store are left out: another store answered them.
    """
    since = now - TTL_SECONDS
    # The time of the first migration is that of the store's creation.
    born = value(connection, "SELECT unixepoch(min(applied_at)) FROM migrations")
    found = read_if_there(
        Path(connection.filename), lambda database: database.selections(since, max(since, float(born or 0.0)))
    )
    # Pairs that were learned from before; a selection is never learned from twice.
    known = selections.known(connection, since)
    new: dict[tuple[str, int], SelectionEvent] = {}
    for selected in found or ():
        if (selected.query, selected.memory) not in known:
            # Oldest first, so setdefault keeps the first selection of each pair.
            new.setdefault((selected.query, selected.memory), selected)
    return list(new.values())
