"""The vectors of live memories, with which documents are compared when they are saved (feature M6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.vectors.vectors import dimensions
from speckit_memory.pipeline.ports import Ids, Vectors

_HOLDS = (
    "m.tier <> 'deprecated' AND (m.expires_at IS NULL OR m.expires_at > ?2) AND NOT EXISTS "
    "(SELECT 1 FROM causal_edges e WHERE e.target_id = m.id AND e.relation = 'supersedes')"
)
_LIVE = f"SELECT m.id, m.key FROM memories m WHERE m.id IN (SELECT value FROM carray(?1)) AND {_HOLDS}"
_EQUAL = (
    "SELECT m.content_hash, m.key FROM memories m WHERE m.mtime_ns IS NOT NULL AND m.content_hash IN "
    f"(SELECT content_hash FROM memories GROUP BY 1 HAVING count(*) > ?1) AND {_HOLDS} ORDER BY m.key"
)
_VECTORS = (
    "SELECT v.embedding FROM chunks c JOIN chunk_vectors v ON v.rowid = c.id "
    "WHERE c.memory_id = ? AND c.vector = 'stored' ORDER BY c.ordinal LIMIT ?"
)


class LivePassages(NamedTuple):
    """A live memory: not deprecated, not expired, not superseded."""

    id: int
    key: str


def memories_of(connection: Connection, chunks: Ids) -> dict[int, int]:
    """Memory ids by chunk id. Chunks that only a damaged vector index names are left out."""
    return dict(
        rows(
            connection,
            "SELECT id, memory_id FROM chunks WHERE id IN (SELECT value FROM carray(?))",
            (integers(chunks),),
        )
    )


def live(connection: Connection, ids: Sequence[int], now: float) -> list[LivePassages]:
    """The memories among `ids` that are live at `now` (epoch seconds), in the order given."""
    found = {memory: LivePassages(memory, key) for memory, key in rows(connection, _LIVE, (integers(ids), now))}
    return [found[memory] for memory in ids if memory in found]


def equal_contents(connection: Connection, now: float) -> list[tuple[str, ...]]:
    """Groups of keys of files with equal content that are all live at `now` (epoch seconds), by first key.

    An archived, deprecated or superseded copy is not counted: searches do not return it next to the other.
    """
    groups: dict[str, list[str]] = {}
    for digest, key in rows(connection, _EQUAL, (1, now)):
        groups.setdefault(digest, []).append(key)
    return [tuple(keys) for keys in groups.values() if len(keys) > 1]


def vectors_of(connection: Connection, memory_id: int, most: int) -> Vectors:
    """Vectors of a memory's first `most` passages in document order: shape (n, dimensions); (0, 0) if it has none."""
    if not dimensions(connection):
        return np.empty((0, 0), np.float32)
    found = [np.frombuffer(blob, np.float32) for (blob,) in rows(connection, _VECTORS, (memory_id, most))]
    return np.stack(found) if found else np.empty((0, 0), np.float32)
