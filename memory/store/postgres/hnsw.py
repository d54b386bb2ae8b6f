"""The approximate index of a workspace's vectors: a graph (HNSW) of pgvector, in half precision.

Each workspace has an index of just its rows: in a common one, a search would visit the rows of the others. The index
only selects rows; `sqlite_vectors` computes their similarities from the stored vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.pipeline.ports import Ids, Vectors

MOST_DIMENSIONS = 4_000
"""Longer vectors have no index: pgvector's limit in half precision."""
NEIGHBOURS, LOOKED_AT = 16, 128
"""Neighbours of a row in the graph, and rows looked at to find them. docs/scaling.md has what others cost and find."""
SETTINGS = "-c hnsw.ef_search=700 -c hnsw.iterative_scan=relaxed_order"
"""How many rows a search looks at before it has enough, and that it goes on when it does not."""
MEMORY = "1GB"
"""What building may take of the server's memory; a graph that is larger takes several times as long."""
_BUILDING = 0x53504B48
"""First key of the advisory locks of processes that build an index; the second is the number of the workspace."""
_STATE = (
    "SELECT c.relname::text, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid "
    "WHERE c.relnamespace = 'speckit'::regnamespace AND c.relname LIKE $1"
)


class HnswIndex:
    """The index of a workspace's vectors. Implements `memory.store.file.connection.EngineIndex`."""

    def __init__(self, reader: Callable[[], Any], session: Callable[[], Any]) -> None:
        """`reader` returns the connection of the calling thread, `session` makes a session of the driver."""
        self._reader = reader
        self._session = session

    def usable(self, dimensions: int) -> bool:
        """Whether there is an index of vectors of this length."""
        connection = self._reader()
        return _indexes(connection).get(_name(connection, dimensions), False)

    def near(self, direction: Vectors, count: int) -> Ids:
        """The chunks found near a unit vector, at most `count`; none without an index."""
        from speckit_memory.memory.store.postgres.adapters import VectorBytes  # which imports the driver

        size = len(direction)
        if not self.usable(size):
            return np.empty(0, np.int64)
        connection = self._reader()
        found = connection.fetch(
            f"SELECT rowid FROM chunk_vectors WHERE {_rows(connection, size)} "
            f"ORDER BY embedding::halfvec({size}) <=> $1::halfvec({size}) LIMIT $2",
            [VectorBytes(direction.tobytes()), count],
        )
        return np.array([row for (row,) in found.rows], np.int64)

    def build(self, dimensions: int) -> None:
        """Builds the index of vectors of this length, unless another process does or they are too long, and drops
        those of other lengths. Writers of this workspace and of others go on meanwhile.

        Raises E054 when the role does not own the table of vectors.
        """
        connection = self._reader()
        if not 0 < dimensions <= MOST_DIMENSIONS:
            return
        with self._session() as session:
            (alone,) = session.execute(f"SELECT pg_try_advisory_lock({_BUILDING}, {connection.workspace})").fetchone()
            if alone and not self.usable(dimensions):
                self._build(connection, session, dimensions)

    def _build(self, connection: Any, session: Any, size: int) -> None:
        import psycopg

        try:
            for earlier in _indexes(connection):
                session.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {earlier}")
            # the table itself, or the partition that has the workspace
            (table,) = session.execute("SELECT tableoid::regclass::text FROM chunk_vectors LIMIT 1").fetchone()
            session.execute(f"SET maintenance_work_mem = '{MEMORY}'")
            session.execute(
                f"CREATE INDEX CONCURRENTLY {_name(connection, size)} ON {table} "
                f"USING hnsw ((embedding::halfvec({size})) halfvec_cosine_ops) "
                f"WITH (m = {NEIGHBOURS}, ef_construction = {LOOKED_AT}) WHERE {_rows(connection, size)}"
            )
        except psycopg.errors.InsufficientPrivilege as error:
            raise SpeckitError("E054", f"the vectors could not be indexed: {error}") from error


def _name(connection: Any, size: int) -> str:
    return f"hnsw_{connection.workspace}_{size}"


def _rows(connection: Any, size: int) -> str:
    """The rows of an index. A condition that is no constant would not let the server choose the index."""
    return f"workspace = {connection.workspace} AND vector_dims(embedding) = {size}"


def _indexes(connection: Any) -> dict[str, bool]:
    """The indexes of a workspace, and whether each is complete."""
    found = connection.fetch(_STATE, [f"hnsw\\_{connection.workspace}\\_%"])
    return {name: bool(valid) for name, valid in found.rows}
