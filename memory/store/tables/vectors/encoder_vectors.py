"""Vectors of the encoder that looks a second time at the best rows. They lie in the cache of embeddings.

A short memory has one vector, as a whole, and a long one has one for each passage. Their keys in the cache are made of
the digest of the document and of the place in it: SQLite alone can tell what waits, and a document that changed waits
again.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw
import numpy as np

from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables.vectors import embedding_cache
from speckit_memory.pipeline.ports import Ids, Vectors

RENEWED_AFTER = 30 * 24 * 3600.0
"""Seconds after which a vector is noted as used again: the cache forgets what nobody used for three months."""

SHORT = 5
"""Passages up to which a memory is one text for the encoder: a vector of the whole, of which it reads the beginning. Of
several chances the best one would be looked at, and memories with many would have an advantage."""

REST = "a running server makes the rest within minutes, `speckit-memory maintain` at once"
"""Who makes the vectors that are missing, in words: every door says the same."""

_TEXTS = f"""
WITH texts (id, memory, key) AS (
    SELECT id, id, content_hash || '/' FROM memories WHERE chunk_count BETWEEN 1 AND {SHORT}
    UNION ALL
    SELECT c.id, m.id, m.content_hash || '/' || c.ordinal
    FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE m.chunk_count > {SHORT}
)
"""
_MADE = "SELECT 1 FROM embedding_cache e WHERE e.model_id = :model AND e.content_hash = texts.key"
_WAITING = f"FROM texts WHERE NOT EXISTS ({_MADE} AND e.last_used_at >= :since)"
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
    """A text without a vector: a whole memory, or the passage `id` of one. `key` is its key in the cache."""

    id: int
    memory: int
    key: str


def waiting(connection: apsw.Connection, model_id: str, now: float) -> int:
    """How many texts wait for a vector of this model, at `now` (epoch seconds)."""
    facts = {"model": model_id, "since": now - RENEWED_AFTER}
    number: int = value(connection, f"{_TEXTS} SELECT count(*) {_WAITING}", facts)
    return number


def next_waiting(connection: apsw.Connection, model_id: str, now: float, limit: int) -> list[WaitingText]:
    """The next that wait: short memories first, then the passages of long ones."""
    facts = {"model": model_id, "since": now - RENEWED_AFTER, "limit": limit}
    found = rows(connection, f"{_TEXTS} SELECT id, memory, key {_WAITING} LIMIT :limit", facts)
    return [WaitingText(*row) for row in found]


def coverage(connection: apsw.Connection, model_id: str) -> tuple[int, int]:
    """How many texts have a vector of this model, and how many could have one."""
    facts = {"model": model_id}
    made, total = rows(connection, f"{_TEXTS} SELECT coalesce(sum(EXISTS ({_MADE})), 0), count(*) FROM texts", facts)[0]
    return made, total


def of(connection: apsw.Connection, model_id: str, ids: Ids) -> dict[int, tuple[Vectors, bool]]:
    """The vector of each of these memories and passages, by id, and whether it is that of a whole memory.

    Those that are not made yet are left out. A passage of a short memory has the vector of the whole, and a long memory
    that of its first passage.
    """
    found = rows(connection, _OF, {"model": model_id, "ids": integers(ids)})
    return {
        id_: (np.frombuffer(vector, np.float32), bool(whole))
        for id_, vector, whole in found
        if embedding_cache.is_usable(vector)
    }
