"""Answers about vectors that are not in memory: sqlite-vec selects rows, `VectorMatrix` computes with them.

A matrix of the few relevant rows gives exactly the answer of the full matrix, bit for bit.
"""

from __future__ import annotations

import apsw
import numpy as np

from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.vectors.matrix import DECIMALS, VectorMatrix, nothing
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.vectors import vectors as table
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

MOST_NEAREST = 200
"""Above this limit, loading and searching the matrix is faster."""

_SPARE = 50
_SECOND_LOOK = 4
"""Factor by which a second attempt fetches more passages: a few long memories may fill the first."""


def dimensions(connection: apsw.Connection) -> int:
    """Length of a vector; 0 when the store has no vectors."""
    return table.dimensions(connection) if table.any_stored(connection) else 0


def nearest(
    connection: apsw.Connection, columns: Columns, query: Vectors, limit: int, scope: Restriction, level: Level
) -> tuple[Ids, Column, Ids] | None:
    """The answer of `VectorMatrix.nearest`, computed from the file.

    Args:
        connection: An open transaction.
        columns: The memories and chunks of the state.
        query: Shape (dimensions,), of any length.
        limit: Number of results; none for 0 or less.
        scope: The memories that are admitted.
        level: "memory" or "chunk".

    Returns:
        None when the rows around the limit are too close in similarity to decide between them.
    """
    query = np.asarray(query)
    size = dimensions(connection)
    if limit <= 0 or not size or not query.any():
        return nothing()
    direction = query / np.linalg.norm(query.astype(np.float64))
    admitted = None
    if not scope.complete:
        chunks = columns.chunks
        admitted = chunks[scope.admits(columns.parents(chunks))]
    # Fetch a margin: several of the nearest chunks may belong to one memory.
    count = 2 * limit + _SPARE
    for wanted in (count, _SECOND_LOOK * count):
        chosen, rough = table.nearest_exact(connection, direction, wanted, admitted)
        answer = _matrix(connection, columns, chosen).nearest(query, limit, scope, level)
        if len(chosen) < wanted:
            return answer
        # Rows that were not selected are no nearer than the last selected one, within sqlite-vec's error.
        if len(answer[0]) == limit and answer[1][-1] > rough[-1] + _error(size):
            return answer
    return None


def chunks_behind(columns: Columns, ids: Ids) -> Ids:
    """The chunks whose vectors `vectors` reads for these ids, ascending; may include unknown ids."""
    ids = np.asarray(ids, np.int64)
    return distinct(np.append(ids, columns.chunks_of(ids)))


def vectors(connection: apsw.Connection, columns: Columns, ids: Ids, chunks: Ids) -> Vectors:
    """The answer of `VectorMatrix.vectors`.

    Args:
        connection: An open transaction.
        columns: The memories and chunks of the state.
        ids: Memories or chunks.
        chunks: The result of `chunks_behind` for these ids.
    """
    return _matrix(connection, columns, chunks).vectors(ids)


def _matrix(connection: apsw.Connection, columns: Columns, chunks: Ids) -> VectorMatrix:
    found, rows = loading.load_vectors_of_chunks(connection, chunks)
    return VectorMatrix(found, columns.parents(found), rows)


def _error(size: int) -> float:
    """An upper bound of the difference between sqlite-vec's similarity and the matrix's.

    sqlite-vec divides by the length of the stored vector, which is 1 within `LENGTH_ERROR`, and sums three products in
    single precision in an unspecified order; the matrix rounds.
    """
    return table.LENGTH_ERROR + (size + 8) * float(np.finfo(np.float32).eps) + 10.0**-DECIMALS
