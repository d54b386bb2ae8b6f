"""What an answer leaves behind. Only what was served counts: components, plans and variants only read."""

from __future__ import annotations

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model import sessions
from speckit_memory.pipeline.runner import Outcome

PATIENCE_MS = 250
"""No answer waits longer for other writers; what it leaves behind is worth less than the answer."""


def served(database: Database, outcome: Outcome, count: int) -> None:
    """Notes in the query's session that its first `count` memories were sent to it (feature A2).

    Raises SpeckitError when the store cannot be written now.
    """
    memories = outcome.pool.candidates.parents[:count].tolist()
    if outcome.query.session and memories and not outcome.query.anchors:  # a section is not the memory
        with database.write(PATIENCE_MS) as txn:
            sessions.mark_sent(txn, outcome.query.session, memories, outcome.query.now)
