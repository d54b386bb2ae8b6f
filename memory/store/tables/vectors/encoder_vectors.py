"""Vectors of the encoder that rescores the best results. They are stored in the embedding cache.

A short memory has one vector for the whole text, a long one has one per passage. The cache key combines the document's
hash and the passage's ordinal, so that SQL alone finds missing vectors, and a changed document gets new ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables.vectors import embedding_cache
from speckit_memory.pipeline.ports import Ids, Vectors

RENEWED_AFTER = 30 * 24 * 3600.0
"""Seconds after which another use of a vector is recorded: the cache evicts vectors unused for three months."""

SHORT = 5
"""Memories of up to this number of passages have a single vector, of the beginning of the whole text. With one vector
per passage the best would count, which would favour memories with many passages."""

REST = "a running server makes the rest within minutes, `speckit-memory maintain` at once"
"""How missing vectors are made, for messages of all interfaces."""

# One row per text that needs a vector: a short memory has the key "HASH/", passage n of a long one "HASH/n".
_TEXTS = f"""
WITH texts (id, memory, key) AS (
    SELECT id, id, content_hash || '/' FROM memories WHERE chunk_count BETWEEN 1 AND {SHORT}
    UNION ALL
    SELECT c.id, m.id, m.content_hash || '/' || c.ordinal
    FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE m.chunk_count > {SHORT}
)
"""
# one search of the primary key (model_id, content_hash) per text
_MADE = "SELECT 1 FROM embedding_cache e WHERE e.model_id = :model AND e.content_hash = texts.key"
_WAITING = f"FROM texts WHERE NOT EXISTS ({_MADE} AND e.last_used_at >= :since)"
# Ids of memories and of passages share one sequence; UNION merges a single passage with its memory.
_OF = f"""
WITH asked (id, key, whole) AS (
    SELECT id, content_hash || iif(chunk_count > {SHORT}, '/0', '/'), chunk_count <= {SHORT}
    FROM memories WHERE id IN (SELECT value FROM carray(:ids))
    UNION
    SELECT c.id, m.content_hash || '/' || iif(m.chunk_count > {SHORT}, c.ordinal, ''), m.chunk_count <= {SHORT}
    FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE c.id IN (SELECT value FROM carray(:ids))
)
SELECT asked.id, e.vector, asked.whole FROM asked
JOIN embedding_cache e ON e.model_id = :model AND e.content_hash = asked.key
"""


class WaitingText(NamedTuple):
    """A text without a vector: a whole memory, or its passage `id`. `key` is the text's key in the cache."""

    id: int
    memory: int
    key: str


def waiting(connection: Connection, model_id: str, now: float) -> int:
    """Number of texts that need a vector of this model at `now` (epoch seconds), or a record of its use."""
    # A vector not used for `RENEWED_AFTER` counts as waiting, so that the next run records its use.
    facts = {"model": model_id, "since": now - RENEWED_AFTER}
    number: int = value(connection, f"{_TEXTS} SELECT count(*) {_WAITING}", facts)
    return number


def next_waiting(connection: Connection, model_id: str, now: float, limit: int) -> list[WaitingText]:
    """The next waiting texts: short memories first, then the passages of long ones.

    Args:
        connection: A connection to the store.
        model_id: The encoder's id.
        now: The time, in epoch seconds.
        limit: Maximum number of texts.
    """
    facts = {"model": model_id, "since": now - RENEWED_AFTER, "limit": limit}
    found = rows(connection, f"{_TEXTS} SELECT id, memory, key {_WAITING} LIMIT :limit", facts)
    return [WaitingText(*row) for row in found]


def coverage(connection: Connection, model_id: str) -> tuple[int, int]:
    """Number of texts that have a vector of this model, and number of all texts."""
    facts = {"model": model_id}
    made, total = rows(connection, f"{_TEXTS} SELECT coalesce(sum(EXISTS ({_MADE})), 0), count(*) FROM texts", facts)[0]
    return made, total


def of(connection: Connection, model_id: str, ids: Ids) -> dict[int, tuple[Vectors, bool]]:
    """The vectors of these memories and passages by id, each with whether it is that of a whole memory.

    Missing vectors are left out. A passage of a short memory gets the vector of the whole, and a long memory that of
    its first passage.
    """
    found = rows(connection, _OF, {"model": model_id, "ids": integers(ids)})
    return {
        id_: (np.frombuffer(vector, np.float32), bool(whole))
        for id_, vector, whole in found
        if embedding_cache.is_usable(vector)
    }
