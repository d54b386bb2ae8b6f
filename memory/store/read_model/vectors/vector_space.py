"""The vectors of a snapshot: searched in the file at first, and loaded into memory after a few queries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from speckit_memory.memory.store.read_model.facts.columns import UNKNOWN, Columns
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import ListedMatrix
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.vectors.token_space import SnapshotTokens
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors.vectors import MODEL
from speckit_memory.pipeline.ports import Column, Ids, Level, Unavailable, Vectors
from speckit_memory.pipeline.process.clock import opening

SEARCHES_OF_FILE = 2
"""Searches answered from the file. Together they cost a quarter of the time of loading all vectors, and a process that
searches once more will search often (docs/decisions/0038-the-file-answers-first.md)."""

ROWS_OF_FILE = 1_000
"""Vectors read one by one, which cost a tenth of the time of loading 14,000 at once."""


class SnapshotVectors:
    """The vectors of one state of the store, and the model that makes them. Implements `pipeline.ports.VectorSpace`."""

    __slots__ = ("_columns", "_held", "_loading", "_models", "_moment", "_rows_read", "_searches", "_tokens")

    def __init__(
        self,
        moment: ReadPoint,
        columns: Columns,
        models: Models,
        tokens: SnapshotTokens,
        held: tuple[str | None, VectorMatrix | ListedMatrix] | None = None,
    ) -> None:
        """`held` holds the vectors and the id of their model if they are already loaded."""
        self._models = models
        self._tokens = tokens
        self._moment = moment
        self._columns = columns
        self._held = held
        self._loading = threading.Lock()
        # Of this and earlier states. A lost update between threads only reads the file once more.
        self._searches = 0
        self._rows_read = 0

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when the store has no vectors."""
        if self._held is None:
            with self._file() as connection:
                if connection is not None:
                    return sqlite_vectors.dimensions(connection)
        return self._loaded().dimensions

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors, not outputs of a sentence encoder."""
        return self._models.static

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query; in a mean of token vectors, rare tokens weigh more."""
        return self._models.embed(text, self._tokens.weights)

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """The nearest ids, cosines and best chunks: see `VectorMatrix.nearest`.

        Args:
            query: Shape (dimensions,), of any length.
            limit: Number of results.
            scope: The memories that are admitted.
            level: "memory" or "chunk".
        """
        if self._held is None and self._searches < SEARCHES_OF_FILE and limit <= sqlite_vectors.MOST_NEAREST:
            with self._file() as connection:
                if connection is not None:
                    self._searches += 1
                    answer = sqlite_vectors.nearest(connection, self._columns, query, limit, scope, level)
                    if answer is not None:
                        return answer
        return self._loaded().nearest(query, limit, scope, level)

    def nearest_chunks(self, queries: Vectors, limit: int) -> list[tuple[Ids, Column]]:
        """The chunks nearest to each of some unit vectors: see `VectorMatrix.nearest_chunks`."""
        return self._loaded().nearest_chunks(queries, limit)

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of chunks, or the mean directions of memories: see `VectorMatrix.vectors`."""
        if self._held is None and len(ids) <= ROWS_OF_FILE:
            with self._file() as connection:
                if connection is not None:
                    chunks = sqlite_vectors.chunks_behind(self._columns, ids)
                    self._rows_read += len(chunks)
                    if self._rows_read <= ROWS_OF_FILE:
                        return sqlite_vectors.vectors(connection, self._columns, ids, chunks)
        return self._loaded().vectors(ids)

    @property
    def listed(self) -> ListedMatrix | None:
        """The vectors with inverted lists, if the store is large enough to have them."""
        matrix = self._held[1] if self._held else None
        return matrix if isinstance(matrix, ListedMatrix) else None

    @property
    def loaded(self) -> bool:
        """Whether the vectors are in memory."""
        return self._held is not None

    def load(self) -> None:
        """Read all vectors into memory unless they are there; for callers with time before the first query."""
        self._loaded()

    def advanced(
        self,
        moment: ReadPoint,
        connection: apsw.Connection,
        columns: Columns,
        tokens: SnapshotTokens,
        outdated: Ids,
        put: Ids,
    ) -> SnapshotVectors:
        """The vectors of the state `columns`.

        Args:
            moment: The new state.
            connection: An open transaction that sees the new state.
            columns: The memories and chunks of the new state.
            tokens: The tokens of the new state.
            outdated: Ids of memories that were changed or deleted.
            put: Ids of memories that were added or changed.
        """
        twin = SnapshotVectors(moment, columns, self._models, tokens)
        twin._searches, twin._rows_read = self._searches, self._rows_read
        if self._held is not None:
            model, matrix = self._held
            # Vectors of another model are not comparable with these.
            if get_meta(connection, MODEL) == model:
                chunks, vectors = loading.load_vectors(connection, put)
                twin._held = model, matrix.replaced(outdated, chunks, columns.parents(chunks), vectors)
        return twin

    @contextmanager
    def _file(self) -> Iterator[apsw.Connection | None]:
        """A connection that sees this state, None if this thread sees another one."""
        with opening(), self._moment.read() as (connection, is_of_it):
            yield connection if is_of_it else None

    def _loaded(self) -> VectorMatrix | ListedMatrix:
        # `_held` is assigned once, complete: only the second test needs the lock
        if self._held is not None:
            return self._held[1]
        with opening(), self._loading:
            if self._held is not None:
                return self._held[1]
            with self._moment.read() as (connection, is_of_it):
                model = get_meta(connection, MODEL)
                chunks, vectors = loading.load_vectors(connection)
            parents = self._columns.parents(chunks)
            known = parents != UNKNOWN
            matrix = VectorMatrix(chunks[known], parents[known], vectors[known])
            if is_of_it:
                self._held = model, matrix
            return matrix
