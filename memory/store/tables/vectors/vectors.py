"""Vectors on disk: one row of a sqlite-vec table per chunk, and the exact search over it (feature C1).

The table is made with the first vector, which fixes dimension and model for the whole store. Vectors have length one.
A text of which the model knows nothing has a zero vector: it is noted in the chunk's row and not stored, because
cosine with it is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Column, Ids, Vectors

MODEL = "embedding_model"
DIMENSIONS = "embedding_dimensions"
LARGEST_SEARCH = 4096
"""sqlite-vec returns no more rows than this."""
LENGTH_ERROR = 1e-3
"""Below this the square of a stored vector's length differs from one, and so does the length."""
ROWS_PER_BLOB = 128
"""sqlite-vec keeps vectors in blobs of so many rows. With its default of 1024, reading a row walks through a megabyte:
loading and deleting take twice as long, searching takes the same."""


def dimensions(connection: apsw.Connection) -> int:
    """Length of the stored vectors; 0 when none was ever stored."""
    return int(get_meta(connection, DIMENSIONS) or 0)


def any_stored(connection: apsw.Connection) -> bool:
    """Whether any chunk has a vector. Zero vectors are not stored, so that a dimension alone does not tell."""
    return value(connection, "SELECT 1 FROM chunks WHERE vector = 'stored' LIMIT 1") is not None


def validate(connection: apsw.Connection, vectors: Vectors, count: int, model_id: str | None) -> None:
    """Raises E002 unless these are `count` unit or zero vectors of the store's model and dimension."""
    if vectors.ndim != 2 or vectors.shape[0] != count or (count and not vectors.shape[1]):
        raise SpeckitError("E002", f"expected {count} vectors as rows, got an array of shape {vectors.shape}")
    if not model_id:
        raise SpeckitError("E002", "vectors were given without the id of the model that made them")
    if not count:
        return
    lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    # NaN and infinity fail this test as well.
    if not np.all((np.abs(lengths - 1.0) < LENGTH_ERROR) | (lengths == 0.0)):
        raise SpeckitError(
            "E002",
            "a vector is not finite or has neither length one nor zero",
            hint="The embedder returned something unusable.",
        )
    model = get_meta(connection, MODEL)
    if model is not None and (model != model_id or dimensions(connection) != vectors.shape[1]):
        raise SpeckitError(
            "E002",
            f"the store holds vectors of {dimensions(connection)} dimensions made by {model}, "
            f"these have {vectors.shape[1]} and were made by {model_id}",
        )


def store(txn: Transaction, chunk_ids: Sequence[int], vectors: Vectors, model_id: str) -> list[bool]:
    """Stores valid vectors of chunks that have none. Returns which of them are stored: zero vectors are not."""
    if not len(chunk_ids):
        return []
    if get_meta(txn.connection, MODEL) is None:
        size = vectors.shape[1]
        txn.connection.execute(
            "CREATE VIRTUAL TABLE chunk_vectors USING vec0 "
            f"(embedding float[{size}] distance_metric=cosine, chunk_size={ROWS_PER_BLOB})"
        )
        set_meta(txn, MODEL, model_id)
        set_meta(txn, DIMENSIONS, str(size))
    matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    stored: list[bool] = np.any(matrix, axis=1).tolist()
    txn.connection.executemany(
        "INSERT INTO chunk_vectors (rowid, embedding) VALUES (?, ?)",
        ((chunk_id, row.tobytes()) for chunk_id, row, kept in zip(chunk_ids, matrix, stored, strict=True) if kept),
    )
    return stored


def insert(txn: Transaction, chunk_ids: Sequence[int], vectors: Vectors, model_id: str) -> None:
    """As `store`, and notes in the row of each chunk whether it has a vector."""
    stored = store(txn, chunk_ids, vectors, model_id)
    txn.connection.executemany(
        "UPDATE chunks SET vector = ? WHERE id = ?",
        [("stored" if kept else "zero", chunk_id) for chunk_id, kept in zip(chunk_ids, stored, strict=True)],
    )


def delete_of_memory(txn: Transaction, memory_id: int) -> None:
    """Removes the vectors of a memory's chunks; the chunks' rows must still be there and are not changed."""
    found = rows(txn.connection, "SELECT id FROM chunks WHERE memory_id = ? AND vector = 'stored'", (memory_id,))
    txn.connection.executemany("DELETE FROM chunk_vectors WHERE rowid = ?", found)


def forget_all(txn: Transaction) -> None:
    """Drops all vectors, their tokens and the models, so that others can take over; all chunks become pending."""
    if get_meta(txn.connection, MODEL) is None:
        return
    token_sets.forget_all(txn)
    drop(txn)


def drop(txn: Transaction) -> None:
    """As `forget_all`, but for the tokens, which stay what they are whichever model makes the vectors.

    The store must hold vectors.
    """
    txn.connection.execute("DROP TABLE chunk_vectors")
    txn.connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (MODEL, DIMENSIONS))
    txn.connection.execute("UPDATE chunks SET vector = 'pending'")
    txn.connection.execute("UPDATE memories SET embedding_status = 'pending' WHERE chunk_count > 0")
    changes.record(txn, [id_ for (id_,) in rows(txn.connection, "SELECT id FROM memories ORDER BY id")], "put")


def nearest_exact(
    connection: apsw.Connection, query: Vectors, limit: int, allowed_chunk_ids: Ids | None = None
) -> tuple[Ids, Column]:
    """Chunks nearest to a query and their cosine similarities in [-1, 1], similarity descending, then id ascending.

    Every vector is compared. `allowed_chunk_ids` restricts the search before it starts. `query` is a unit vector of
    shape (dimensions,); a zero vector is near to nothing. Raises E002 for another shape, E032 for a limit over 4096.
    """
    if not 0 <= limit <= LARGEST_SEARCH:
        raise SpeckitError("E032", f"limit is {limit}, accepted: 0 to {LARGEST_SEARCH}")
    size = dimensions(connection)
    if size and query.shape != (size,):
        raise SpeckitError("E002", f"the query has the shape {query.shape}, the store's vectors have ({size},)")
    if not size or not limit or not query.any():
        return np.empty(0, np.int64), np.empty(0, np.float64)
    within = "" if allowed_chunk_ids is None else "AND rowid IN (SELECT value FROM carray(?3))"
    sql = f"SELECT rowid, distance FROM chunk_vectors WHERE embedding MATCH ?1 AND k = ?2 {within}"
    bindings = (np.ascontiguousarray(query, np.float32).tobytes(),)
    scope = () if allowed_chunk_ids is None else (integers(allowed_chunk_ids),)
    # sqlite-vec cuts among equal distances as it likes: ask for more until the cut falls between different ones.
    wanted = limit + 1
    while True:
        wanted = min(wanted, LARGEST_SEARCH)
        found = rows(connection, sql, (*bindings, wanted, *scope))
        if len(found) < wanted or wanted == LARGEST_SEARCH or found[limit - 1][1] != found[-1][1]:
            break
        wanted *= 2
    ids = np.array([row[0] for row in found], np.int64)
    similarity = 1.0 - np.array([row[1] for row in found], np.float64)
    order = np.lexsort((ids, -similarity))[:limit]
    return ids[order], similarity[order]
