"""Deletes the state of sessions a day after their last event (feature M13)."""

from __future__ import annotations

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts, value
from speckit_memory.memory.store.tables.graph import edge_uses

KEPT = 24 * 3600.0
"""Seconds after the last event of a session for which its state is kept."""
BATCH = 50
"""Sessions per transaction."""

# A time more than a day in the future comes from a clock that has been set back since.
_OVER = "NOT {0} BETWEEN :now - :kept AND :now + :kept"
_SESSIONS = f"FROM session_state WHERE {_OVER.format('last_event')}"
_SENT = f"FROM session_sent WHERE {_OVER.format('sent_at')}"


def count_old_sessions(connection: Connection, now: float) -> int:
    """Number of sessions whose last event was more than a day before `now` (epoch seconds)."""
    number: int = value(
        connection,
        f"SELECT count(*) FROM (SELECT session {_SESSIONS} UNION SELECT session {_SENT})",
        {"now": now, "kept": KEPT},
    )
    return number


def forget_over(txn: Transaction, now: float) -> int:
    """Delete up to `BATCH` of them, with their attention and their record of sent texts; returns their number."""
    facts = {"now": now, "kept": KEPT}
    chosen = f"SELECT session {_SESSIONS} UNION SELECT session {_SENT} ORDER BY session LIMIT {BATCH}"
    # A session may have rows in only one of the two tables.
    found = [session for (session,) in rows(txn.connection, chosen, facts)]
    kept = texts(found)
    # each table by its own times: a session that is old in one may be recent in the other
    txn.connection.execute(
        f"DELETE {_SENT} AND session IN (SELECT value FROM carray(:chosen))", {**facts, "chosen": kept}
    )
    gone = [
        session
        for (session,) in rows(
            txn.connection,
            f"DELETE {_SESSIONS} AND session IN (SELECT value FROM carray(:chosen)) RETURNING session",
            {**facts, "chosen": kept},
        )
    ]
    edge_uses.forget_sessions(txn, gone)
    txn.connection.execute("DELETE FROM working_memory WHERE session IN (SELECT value FROM carray(?))", (texts(gone),))
    return len(found)
