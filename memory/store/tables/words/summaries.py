"""Summaries of long memories, each with the hash of the summarised text (features I11 and R8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.pipeline.ports import Passage

_OUTDATED = (
    "FROM memories m LEFT JOIN summaries s ON s.memory_id = m.id "
    "WHERE m.chunk_count > 1 AND s.content_hash IS NOT m.content_hash"
)

OF_MEMORIES = (
    "SELECT m.id, s.summary, min(c.first_line), max(c.last_line) FROM summaries s JOIN memories m ON "
    "m.id = s.memory_id AND m.content_hash = s.content_hash JOIN chunks c ON c.memory_id = m.id "
    "WHERE s.summary <> '' AND s.memory_id IN (SELECT value FROM carray(?)) GROUP BY m.id, s.summary"
)


class SummaryCandidate(NamedTuple):
    """A memory of several passages whose present text has no summary."""

    memory: int
    content_hash: str
    title: str
    body: str


def memories(connection: Connection) -> int:
    """Number of memories in the store."""
    number: int = value(connection, "SELECT count(*) FROM memories")
    return number


def count_outdated(connection: Connection) -> int:
    """Number of memories of several passages whose present text has no summary."""
    number: int = value(connection, f"SELECT count(*) {_OUTDATED}")
    return number


def unread(connection: Connection, limit: int, characters: int) -> Iterator[SummaryCandidate]:
    """The first `limit` memories without a summary, by id, with the first `characters` of their texts."""
    # the inner SELECT chooses the memories before any body is read
    found = connection.execute(
        "SELECT id, content_hash, title, substr(body, 1, ?2) FROM bodies JOIN "
        f"(SELECT m.id, m.content_hash, m.title {_OUTDATED} ORDER BY m.id LIMIT ?1) ON memory_id = id ORDER BY id",
        (limit, characters),
    )
    return (SummaryCandidate(*row) for row in found)


def store(txn: Transaction, memory: int, content_hash: str, summary: str) -> None:
    """Stores a summary; does nothing for a memory that was deleted meanwhile.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        content_hash: Hash of the summarised text.
        summary: The summary; "" if no sentence sums up the text.
    """
    txn.connection.execute(
        "INSERT OR REPLACE INTO summaries SELECT id, ?2, ?3 FROM memories WHERE id = ?1",
        (memory, content_hash, summary),
    )


def of_memories(connection: Connection, ids: Sequence[int]) -> dict[int, Passage]:
    """Up-to-date summaries of these memories by id, as passages over all lines of the text; those without are left
    out."""
    found = rows(connection, OF_MEMORIES, (integers(ids),))
    return {memory: Passage(memory, memory, text, "", "", first, last) for memory, text, first, last in found}
