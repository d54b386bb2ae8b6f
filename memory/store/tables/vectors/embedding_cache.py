"""Cache of the vectors of embedded texts, so that reindexing costs no model time (feature I7).

It holds those of encoders: vectors pooled of tokens are made as fast as a cache is read. Keys are the model and the
hash of the embedded text. A model's id must change with anything that changes its vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts
from speckit_memory.pipeline.ports import Vectors

_TOLERANCE = 1e-2
"""Largest accepted difference between the squared length of a vector and 1."""


def lookup(connection: Connection, model_id: str, hashes: Collection[str]) -> dict[str, Vectors]:
    """The cached vectors of these texts, by hash, each of shape (dimensions,). Does not record a use: see `touch`.

    An entry of a damaged file that is neither a unit vector nor a zero vector counts as missing.
    """
    # one search of the primary key (model_id, content_hash) per hash
    found = rows(
        connection,
        "SELECT content_hash, vector FROM embedding_cache "
        "WHERE model_id = ? AND content_hash IN (SELECT value FROM carray(?))",
        (model_id, texts(hashes)),
    )
    return {content_hash: np.frombuffer(vector, np.float32) for content_hash, vector in found if is_usable(vector)}


def is_usable(vector: object) -> bool:
    """Whether this is a unit or zero vector of 32-bit floats: a damaged file can return any value."""
    if not isinstance(vector, bytes) or not vector or len(vector) % 4:
        return False
    numbers = np.frombuffer(vector, np.float32)
    return not numbers.any() or abs(float(numbers @ numbers) - 1.0) < _TOLERANCE


def store(txn: Transaction, model_id: str, vectors: Mapping[str, Vectors], now: float) -> None:
    """Adds or replaces vectors.

    Args:
        txn: The transaction.
        model_id: The model that made them.
        vectors: Vectors of shape (dimensions,), by the hash of their text.
        now: The time, in epoch seconds.
    """
    txn.connection.executemany(
        "INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, ?, ?, ?)",
        (
            (model_id, content_hash, np.ascontiguousarray(vector, np.float32).tobytes(), now, now)
            for content_hash, vector in vectors.items()
        ),
    )


def touch(txn: Transaction, model_id: str, hashes: Collection[str], now: float) -> None:
    """Records a use of entries, which protects them from eviction.

    Args:
        txn: The transaction.
        model_id: The model of the entries.
        hashes: Hashes of the embedded texts; unknown ones are ignored.
        now: The time, in epoch seconds.
    """
    txn.connection.execute(
        "UPDATE embedding_cache SET last_used_at = ? "
        "WHERE model_id = ? AND content_hash IN (SELECT value FROM carray(?))",
        (now, model_id, texts(hashes)),
    )


def evict(txn: Transaction, older_than: float) -> int:
    """Deletes the entries last used before this time (epoch seconds); returns their number."""
    # a range of the index embedding_cache_by_use
    txn.connection.execute("DELETE FROM embedding_cache WHERE last_used_at < ?", (older_than,))
    return txn.connection.changes()
