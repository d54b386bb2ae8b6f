"""Creates summaries in the background, in stores of more than 5,000 memories (features I11 and R8)."""

from __future__ import annotations

from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.summarising import READ, summary
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.tables.words import summaries as table

LARGE_STORE = 5_000
"""Memories above which a store has summaries."""
BATCH = 50
"""Memories per batch."""

Found = list[tuple[int, str, str]]


def waiting(connection: Connection, _now: float) -> int:
    """Return how many memories of several passages lack a summary; 0 in a store that is not large."""
    return table.count_outdated(connection) if table.memories(connection) > LARGE_STORE else 0


def make_summaries(connection: Connection, _now: float) -> Found:
    """Return the summaries of the next memories, each with the hash of its text."""
    if table.memories(connection) <= LARGE_STORE:
        return []
    analyser = Analyser()
    return [
        (one.memory, one.content_hash, " ".join(summary(one.title, one.body, analyser.tokens)))
        for one in table.unread(connection, BATCH, READ)
    ]


def keep(txn: Transaction, _now: float, made: Found) -> int:
    """Store summaries; return how many."""
    for memory, content_hash, text in made:
        table.store(txn, memory, content_hash, text)
    return len(made)
