"""Answers about vectors without a segment: the store's engine selects rows, `VectorMatrix` computes with them.

A matrix of the few relevant rows gives exactly the answer of the full matrix, bit for bit. Where an approximate index
of the engine selects them, a row can be missed; similarities and their order are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, EngineIndex
from speckit_memory.memory.store.read_model.facts.columns import UNKNOWN, Columns
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import count_answer
from speckit_memory.memory.store.read_model.vectors.matrix import DECIMALS, VectorMatrix, nothing
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.vectors import vectors as table
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

_SPARE = 50
_WIDE = 0.5
"""A filter that admits less than this share of the memories is applied by the engine, which needs the ids of all that
it admits; other filters are applied to what it finds."""
_SECOND_LOOK = 4
"""Factor by which a second attempt fetches more passages: a few long memories may fill the first."""


def dimensions(connection: Connection) -> int:
    """Length of a vector; 0 when the store has no vectors."""
    return table.dimensions(connection) if table.any_stored(connection) else 0


def nearest(
    connection: Connection,
    columns: Columns,
    query: Vectors,
    limit: int,
    scope: Restriction,
    level: Level,
    index: EngineIndex | None = None,
) -> tuple[Ids, Column, Ids]:
    """The answer of `VectorMatrix.nearest`, computed from the file.

    Args:
        connection: An open transaction.
        columns: The memories and chunks of the state.
        query: Shape (dimensions,), of any length.
        limit: Number of results; none for 0 or less.
        scope: The memories that are admitted.
        level: "memory" or "chunk".
        index: The engine's approximate index of vectors, if it may be used.
    """
    query = np.asarray(query)
    size = dimensions(connection)
    if limit <= 0 or not size or not query.any():
        return nothing()
    direction = query / np.linalg.norm(query.astype(np.float64))
    # Fetch a margin: several of the nearest chunks may belong to one memory.
    count = 2 * limit + _SPARE
    # A filter is applied to what was selected, so that more is selected where it admits less.
    widened = ceil(count * columns.count / max(1, scope.size))
    if index is not None:
        for wanted in _growing(widened):
            chosen = index.near(direction.astype(np.float32), wanted)
            answer = _matrix(columns, *loading.load_vectors_of_chunks(connection, chosen)).nearest(
                query, limit, scope, level
            )
            if len(answer[0]) == limit:
                count_answer("hnsw")
                return answer
            if len(chosen) < wanted:
                break
    admitted = None
    if scope.size < _WIDE * columns.count:
        chunks = columns.chunks
        admitted, widened = chunks[scope.admits(columns.parents(chunks))], count
    for wanted in _growing(widened):
        chosen, rough = table.nearest_exact(connection, direction, wanted, admitted)
        answer = _matrix(columns, *loading.load_vectors_of_chunks(connection, chosen)).nearest(
            query, limit, scope, level
        )
        if len(chosen) < wanted:
            return answer
        # Rows that were not selected are no nearer than the last selected one, within the engine's error.
        if len(answer[0]) == limit and answer[1][-1] > rough[-1] + _error(size):
            return answer
    # Many results, or rows around the limit that are too close in similarity to decide between them.
    return _matrix(columns, *loading.load_vectors(connection)).nearest(query, limit, scope, level)


def _growing(count: int) -> Iterator[int]:
    """A number of passages to select, and a larger one for a second attempt."""
    return (wanted for wanted in (count, _SECOND_LOOK * count) if wanted <= table.LARGEST_SEARCH)


def vectors(connection: Connection, columns: Columns, ids: Ids) -> Vectors:
    """The answer of `VectorMatrix.vectors`."""
    ids = np.asarray(ids, np.int64)
    # may include unknown ids
    chunks = distinct(np.append(ids, columns.chunks_of(ids)))
    return _matrix(columns, *loading.load_vectors_of_chunks(connection, chunks)).vectors(ids)


def _matrix(columns: Columns, chunks: Ids, vectors: Vectors) -> VectorMatrix:
    """The matrix of these chunks, without those that the state does not know: the connection may see another one."""
    parents = columns.parents(chunks)
    known = parents != UNKNOWN
    return VectorMatrix(chunks[known], parents[known], vectors[known])


def _error(size: int) -> float:
    """An upper bound of the difference between sqlite-vec's similarity and the matrix's.

    sqlite-vec divides by the length of the stored vector, which is 1 within `LENGTH_ERROR`, and sums three products in
    single precision in an unspecified order; the matrix rounds.
    """
    return table.LENGTH_ERROR + (size + 8) * float(np.finfo(np.float32).eps) + 10.0**-DECIMALS
