"""Vectors of texts that were embedded before, so that indexing again costs no model time (feature I7).

Keyed by model and by the hash of the embedded text. The model's id must change with anything that changes its vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts
from speckit_memory.pipeline.ports import Vectors

_TOLERANCE = 1e-2
"""How far the squared length of a vector may be from 1."""


def lookup(connection: apsw.Connection, model_id: str, hashes: Collection[str]) -> dict[str, Vectors]:
    """The cached vectors among these texts, by hash, shape (dimensions,). Does not write: see `touch`.

    An entry that a damaged file gives back as something else than a unit or zero vector counts as missing.
    """
    found = rows(
        connection,
        "SELECT content_hash, vector FROM embedding_cache "
        "WHERE model_id = ? AND content_hash IN (SELECT value FROM carray(?))",
        (model_id, texts(hashes)),
    )
    return {content_hash: np.frombuffer(vector, np.float32) for content_hash, vector in found if is_usable(vector)}


def is_usable(vector: object) -> bool:
    """Whether this is a vector: a damaged file can give back anything."""
    if not isinstance(vector, bytes) or not vector or len(vector) % 4:
        return False
    numbers = np.frombuffer(vector, np.float32)
    return not numbers.any() or abs(float(numbers @ numbers) - 1.0) < _TOLERANCE


def store(txn: Transaction, model_id: str, vectors: Mapping[str, Vectors], now: float) -> None:
    """Adds vectors by the hash of their text, or replaces them."""
    txn.connection.executemany(
        "INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, ?, ?, ?)",
        (
            (model_id, content_hash, np.ascontiguousarray(vector, np.float32).tobytes(), now, now)
            for content_hash, vector in vectors.items()
        ),
    )


def touch(txn: Transaction, model_id: str, hashes: Collection[str], now: float) -> None:
    """Notes that these entries were of use, which keeps them from being evicted."""
    txn.connection.execute(
        "UPDATE embedding_cache SET last_used_at = ? "
        "WHERE model_id = ? AND content_hash IN (SELECT value FROM carray(?))",
        (now, model_id, texts(hashes)),
    )


def evict(txn: Transaction, older_than: float) -> int:
    """Removes the entries last used before this time (epoch seconds); returns how many."""
    txn.connection.execute("DELETE FROM embedding_cache WHERE last_used_at < ?", (older_than,))
    return txn.connection.changes()
