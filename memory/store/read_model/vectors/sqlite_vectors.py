"""Answers about vectors that are not in memory: sqlite-vec chooses the rows, `VectorMatrix` computes with them.

A matrix of the few rows that decide gives the very answer of the matrix of all rows, to the last bit.
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
"""More rows than so many are found faster in a matrix, the time to load it included."""

_SPARE = 50
_SECOND_LOOK = 4
"""The second look is for so many times the passages of the first: long memories may fill that one by themselves."""


def dimensions(connection: apsw.Connection) -> int:
    """Length of a vector; 0 when the store holds none."""
    return table.dimensions(connection) if table.any_stored(connection) else 0


def nearest(
    connection: apsw.Connection, columns: Columns, query: Vectors, limit: int, scope: Restriction, level: Level
) -> tuple[Ids, Column, Ids] | None:
    """What `VectorMatrix.nearest` answers; None when many rows tie at the limit, or lie too near to it to be sure."""
    query = np.asarray(query)
    size = dimensions(connection)
    if limit <= 0 or not size or not query.any():
        return nothing()
    direction = query / np.linalg.norm(query.astype(np.float64))
    admitted = None
    if not scope.complete:
        chunks = columns.chunks
        admitted = chunks[scope.admits(columns.parents(chunks))]
    count = 2 * limit + _SPARE
    for wanted in (count, _SECOND_LOOK * count):
        chosen, rough = table.nearest_exact(connection, direction, wanted, admitted)
        answer = _matrix(connection, columns, chosen).nearest(query, limit, scope, level)
        if len(chosen) < wanted:
            return answer
        # What was not chosen is no nearer than the last that was, as far as sqlite-vec can tell.
        if len(answer[0]) == limit and answer[1][-1] > rough[-1] + _error(size):
            return answer
    return None


def chunks_behind(columns: Columns, ids: Ids) -> Ids:
    """The chunks whose vectors `vectors` reads for these ids, ascending; unknown ids may be among them."""
    ids = np.asarray(ids, np.int64)
    return distinct(np.append(ids, columns.chunks_of(ids)))


def vectors(connection: apsw.Connection, columns: Columns, ids: Ids, chunks: Ids) -> Vectors:
    """What `VectorMatrix.vectors` answers, from the vectors of these chunks: those behind the ids."""
    return _matrix(connection, columns, chunks).vectors(ids)


def _matrix(connection: apsw.Connection, columns: Columns, chunks: Ids) -> VectorMatrix:
    found, rows = loading.load_vectors_of_chunks(connection, chunks)
    return VectorMatrix(found, columns.parents(found), rows)


def _error(size: int) -> float:
    """More than sqlite-vec's similarity can differ from the matrix's.

    sqlite-vec divides by the length of the stored vector, which is one but for `LENGTH_ERROR`, and sums three products
    in single precision, whatever its order; the matrix rounds.
    """
    return table.LENGTH_ERROR + (size + 8) * float(np.finfo(np.float32).eps) + 10.0**-DECIMALS
