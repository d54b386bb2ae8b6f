"""What an answer leaves behind. Only what was served counts: components, plans and variants only read."""

from __future__ import annotations

from memory.store import sessions
from memory.store.connection import Database
from pipeline.runner import Outcome

PATIENCE_MS = 250
"""No answer waits longer for other writers; what it leaves behind is worth less than the answer."""


def served(database: Database, outcome: Outcome, now: float) -> None:
    """Notes in the query's session that the memories of this outcome were sent to it (feature A2).

    `now` is in epoch seconds. Raises SpeckitError when the store cannot be written now.
    """
    if outcome.query.session and len(outcome.pool):
        with database.write(PATIENCE_MS) as txn:
            sessions.mark_sent(txn, outcome.query.session, outcome.pool.candidates.parents.tolist(), now)
