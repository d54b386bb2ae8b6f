"""Writes the effects of served answers on sessions. Pipeline components, plans and variants write nothing."""

from __future__ import annotations

from speckit_memory.engine.answers import resume
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.sessions import sent_texts, working_memory

PATIENCE_MS = 250
"""The longest wait for other writers: an answer matters more than its effects."""


def record_served(database: Database, result: SearchResult, count: int, *, remembered: bool) -> None:
    """Records that the first `count` memories of an answer reached the query's session, which now attends to them (M4).

    Args:
        database: The store's file.
        result: The answer.
        count: How many leading rows were served; rows that were sent before count as mentioned again.
        remembered: Whether the pipeline deduplicates, so that the texts count as sent (feature A2).

    Raises:
        SpeckitError: The store cannot be written now.
    """
    query = result.outcome.query
    if not query.session:
        return
    rows = result.results[:count]
    texts = [(row.id, row.content or row.snippet) for row in rows if row.content or row.snippet]
    with database.write(PATIENCE_MS) as txn:
        # One transaction: what was forgotten and what was sent change together.
        if resume.asks_for_handover(query):  # an agent that resumes work has lost its earlier context
            sent_texts.forget_sent(txn, query.session)
        if texts and remembered and not query.anchors:  # with anchors only sections were sent
            sent_texts.mark_sent(txn, query.session, texts, query.now)
        working_memory.note_event(
            txn,
            query.session,
            [row.id for row in rows if not row.repeated],
            query.now,
            mentioned=[row.id for row in rows if row.repeated],
            source="answer",
            source_call=result.query_id,
        )


def record_saved(database: Database, session: str, memory: int, now: float) -> None:
    """Records that a session saved a memory, and so attends to it.

    Args:
        database: The store's file.
        session: The session.
        memory: The id of the memory.
        now: Epoch seconds.

    Raises:
        SpeckitError: The store cannot be written now.
    """
    with database.write(PATIENCE_MS) as txn:
        working_memory.note_event(txn, session, [memory], now, source="save")


def read(database: Database, session: str, memory: int, text: str, now: float) -> None:
    """Records that a session fetched text of a memory, and so attends to it and was sent the text.

    Args:
        database: The store's file.
        session: The session.
        memory: The id of the memory.
        text: The text.
        now: Epoch seconds.

    Raises:
        SpeckitError: The store cannot be written now.
    """
    with database.write(PATIENCE_MS) as txn:
        sent_texts.mark_sent(txn, session, [(memory, text)], now)
        working_memory.note_event(txn, session, [memory], now, source="read")
