"""Vectors on disk: one row of a sqlite-vec table per chunk, and exact nearest-neighbour search (feature C1).

The table is created with the first vector, which fixes the dimension and model of the whole store. Vectors have length
one. A text without known tokens has a zero vector, which is marked in the chunk's row but not stored, because its
cosine similarity is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Column, Ids, Vectors

MODEL = "embedding_model"
DIMENSIONS = "embedding_dimensions"
LARGEST_SEARCH = 4096
"""Maximum number of rows that sqlite-vec returns."""
LENGTH_ERROR = 1e-3
"""Largest accepted difference between the squared length of a vector and 1."""
ROWS_PER_BLOB = 128
"""Rows per blob of sqlite-vec. With its default of 1024, reading a row goes through a megabyte: loading and deleting
take twice as long, searching takes the same time."""


def dimensions(connection: Connection) -> int:
    """Dimensions of the stored vectors; 0 when none was ever stored."""
    return int(get_meta(connection, DIMENSIONS) or 0)


def any_stored(connection: Connection) -> bool:
    """Whether any vector is stored. A known dimension does not imply it, since zero vectors are not stored."""
    return value(connection, "SELECT 1 FROM chunks WHERE vector = 'stored' LIMIT 1") is not None


def count(connection: Connection) -> int:
    """Number of passages with a vector."""
    return int(value(connection, "SELECT count(*) FROM chunks WHERE vector = 'stored'"))


def validate(connection: Connection, vectors: Vectors, count: int, model_id: str | None) -> None:
    """Checks vectors before they are stored.

    Args:
        connection: A connection to the store.
        vectors: Unit or zero vectors, shape (count, dimensions).
        count: The expected number of vectors.
        model_id: The model that made them, which must be the store's if it has one.

    Raises:
        SpeckitError: E002 if a condition fails.
    """
    if vectors.ndim != 2 or vectors.shape[0] != count or (count and not vectors.shape[1]):
        raise SpeckitError("E002", f"expected {count} vectors as rows, got an array of shape {vectors.shape}")
    if not model_id:
        raise SpeckitError("E002", "vectors were given without the id of the model that made them")
    if not count:
        return
    # lengths: (count,) float64, ‖v‖² of each row without a temporary copy of the matrix
    lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    # NaN and infinity fail this test as well.
    if not np.all((np.abs(lengths - 1.0) < LENGTH_ERROR) | (lengths == 0.0)):
        raise SpeckitError(
            "E002",
            "a vector is not finite or has neither length one nor zero",
            hint="The embedder returned unusable vectors.",
        )
    model = get_meta(connection, MODEL)
    if model is not None and (model != model_id or dimensions(connection) != vectors.shape[1]):
        raise SpeckitError(
            "E002",
            f"the store holds vectors of {dimensions(connection)} dimensions made by {model}, "
            f"these have {vectors.shape[1]} and were made by {model_id}",
        )


def store(txn: Transaction, chunk_ids: Sequence[int], vectors: Vectors, model_id: str) -> list[bool]:
    """Stores vectors of chunks that have none; the first ones create the table.

    Args:
        txn: The transaction.
        chunk_ids: The chunks.
        vectors: Validated vectors, shape (len(chunk_ids), dimensions).
        model_id: The model that made them.

    Returns:
        For each vector, whether it is stored: zero vectors are not.
    """
    if not len(chunk_ids):
        return []
    if get_meta(txn.connection, MODEL) is None:
        create(txn, vectors.shape[1], model_id)
    matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    stored: list[bool] = np.any(matrix, axis=1).tolist()
    txn.connection.executemany(
        "INSERT INTO chunk_vectors (rowid, embedding) VALUES (?, ?)",
        ((chunk_id, row.tobytes()) for chunk_id, row, kept in zip(chunk_ids, matrix, stored, strict=True) if kept),
    )
    return stored


def create(txn: Transaction, size: int, model_id: str) -> None:
    """Makes the table of a store without vectors, for those of a model with this number of dimensions."""
    txn.connection.execute(
        "CREATE VIRTUAL TABLE chunk_vectors USING vec0 "
        f"(embedding float[{size}] distance_metric=cosine, chunk_size={ROWS_PER_BLOB})"
    )
    set_meta(txn, MODEL, model_id)
    set_meta(txn, DIMENSIONS, str(size))


def insert(txn: Transaction, chunk_ids: Sequence[int], vectors: Vectors, model_id: str) -> None:
    """Stores vectors as `store` does, and updates the rows of the chunks.

    Args:
        txn: The transaction.
        chunk_ids: Chunks without vectors.
        vectors: Validated vectors, shape (len(chunk_ids), dimensions).
        model_id: The model that made them.
    """
    stored = store(txn, chunk_ids, vectors, model_id)
    txn.connection.executemany(
        "UPDATE chunks SET vector = ? WHERE id = ?",
        [("stored" if kept else "zero", chunk_id) for chunk_id, kept in zip(chunk_ids, stored, strict=True)],
    )


def delete_of_memory(txn: Transaction, memory_id: int) -> None:
    """Deletes the vectors of a memory's chunks; the rows of the chunks must still exist and are not changed."""
    found = rows(txn.connection, "SELECT id FROM chunks WHERE memory_id = ? AND vector = 'stored'", (memory_id,))
    txn.connection.executemany("DELETE FROM chunk_vectors WHERE rowid = ?", found)


def forget_all(txn: Transaction) -> None:
    """Deletes all vectors, tokens and model ids, so that other models can be used; all chunks become pending."""
    if get_meta(txn.connection, MODEL) is None:
        return
    with txn.seeing_all():
        token_sets.forget_all(txn)
        drop(txn)


def drop(txn: Transaction) -> None:
    """As `forget_all`, but keeps the tokens, which do not depend on the model of the vectors.

    The store must hold vectors.
    """
    txn.connection.execute("DROP TABLE chunk_vectors")
    txn.connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (MODEL, DIMENSIONS))
    txn.connection.execute("UPDATE chunks SET vector = 'pending'")
    txn.connection.execute("UPDATE memories SET embedding_status = 'pending' WHERE chunk_count > 0")
    changes.record(txn, [id_ for (id_,) in rows(txn.connection, "SELECT id FROM memories ORDER BY id")], "put")


def nearest_exact(
    connection: Connection, query: Vectors, limit: int, allowed_chunk_ids: Ids | None = None
) -> tuple[Ids, Column]:
    """Finds the nearest chunks by comparing the query with every vector.

    Args:
        connection: A connection to the store.
        query: A unit vector, shape (dimensions,); nothing is near a zero vector.
        limit: Maximum number of chunks, 0 to 4096.
        allowed_chunk_ids: Restricts the search to these chunks; None for all.

    Returns:
        Chunk ids and cosine similarities in [-1, 1], by similarity descending, then id ascending.

    Raises:
        SpeckitError: E002 for another shape, E032 for a limit out of range.
    """
    if not 0 <= limit <= LARGEST_SEARCH:
        raise SpeckitError.of([out_of_range("limit", limit, f"0 to {LARGEST_SEARCH}")])
    size = dimensions(connection)
    if size and query.shape != (size,):
        raise SpeckitError("E002", f"the query has the shape {query.shape}, the store's vectors have ({size},)")
    if not size or not limit or not query.any():
        return np.empty(0, np.int64), np.empty(0, np.float64)
    within = "" if allowed_chunk_ids is None else "AND rowid IN (SELECT value FROM carray(?3))"
    sql = f"SELECT rowid, distance FROM chunk_vectors WHERE embedding MATCH ?1 AND k = ?2 {within}"
    bindings = (np.ascontiguousarray(query, np.float32).tobytes(),)
    scope = () if allowed_chunk_ids is None else (integers(allowed_chunk_ids),)
    # sqlite-vec truncates equal distances in arbitrary order: ask for more rows until the cut separates distances.
    wanted = limit + 1
    while True:
        wanted = min(wanted, LARGEST_SEARCH)
        found = rows(connection, sql, (*bindings, wanted, *scope))
        if len(found) < wanted or wanted == LARGEST_SEARCH or found[limit - 1][1] != found[-1][1]:
            break
        wanted *= 2
    ids = np.array([row[0] for row in found], np.int64)
    similarity = 1.0 - np.array([row[1] for row in found], np.float64)  # sqlite-vec: cosine distance = 1 - cos
    # lexsort sorts by its last key first
    order = np.lexsort((ids, -similarity))[:limit]
    return ids[order], similarity[order]
