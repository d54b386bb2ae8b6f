"""What an answer leaves behind. Only what was served counts: components, plans and variants only read."""

from __future__ import annotations

from speckit_memory.engine.answers import resume
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.facts import sessions
from speckit_memory.memory.store.tables.sessions import working_memory

PATIENCE_MS = 250
"""No answer waits longer for other writers; what it leaves behind is worth less than the answer."""


def served(database: Database, result: SearchResult, count: int, *, remembered: bool) -> None:
    """Notes an answer whose first `count` memories reached the query's session: the session attends to them now
    (feature M4) and, where the pipeline has it `remembered`, was sent them (feature A2).

    What was sent before is mentioned again. Raises SpeckitError when the store cannot be written now.
    """
    query = result.outcome.query
    if not query.session:
        return
    rows = result.results[:count]
    texts = [(row.id, row.content or row.snippet) for row in rows if row.content or row.snippet]
    with database.write(PATIENCE_MS) as txn:
        if resume.asks_for_handover(query):  # who asks where work stopped has lost what was sent before
            sessions.forget_sent(txn, query.session)
        if texts and remembered and not query.anchors:  # sections were sent in their place
            sessions.mark_sent(txn, query.session, texts, query.now)
        working_memory.note_event(
            txn,
            query.session,
            [row.id for row in rows if not row.repeated],
            query.now,
            mentioned=[row.id for row in rows if row.repeated],
            source="answer",
            source_call=result.query_id,
        )


def saved(database: Database, session: str, memory: int, now: float) -> None:
    """Notes that a session saved a memory at `now` (epoch seconds): it attends to that.

    Raises SpeckitError when the store cannot be written now.
    """
    with database.write(PATIENCE_MS) as txn:
        working_memory.note_event(txn, session, [memory], now, source="save")


def read(database: Database, session: str, memory: int, text: str, now: float) -> None:
    """Notes that a session read a text of a memory by its name at `now` (epoch seconds): it attends to the memory, and
    was sent that text.

    Raises SpeckitError when the store cannot be written now.
    """
    with database.write(PATIENCE_MS) as txn:
        sessions.mark_sent(txn, session, [(memory, text)], now)
        working_memory.note_event(txn, session, [memory], now, source="read")
