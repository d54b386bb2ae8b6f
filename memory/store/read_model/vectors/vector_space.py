"""The vectors of a snapshot: in a segment, or searched in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import ListedMatrix
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.vectors.token_space import SnapshotTokens
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors.vectors import MODEL, nearest_exact
from speckit_memory.pipeline.ports import Column, Ids, Level, Unavailable, Vectors
from speckit_memory.pipeline.process.clock import opening


class SnapshotVectors:
    """The vectors of one state of the store, and the model that makes them. Implements `pipeline.ports.VectorSpace`.

    They are those of a segment with the changes since, or the file answers, with the same bits.
    """

    __slots__ = ("_columns", "_held", "_models", "_moment", "_tokens")

    def __init__(
        self,
        moment: ReadPoint,
        columns: Columns,
        models: Models,
        tokens: SnapshotTokens,
        held: tuple[str | None, VectorMatrix | ListedMatrix] | None = None,
    ) -> None:
        """`held` holds the vectors and the id of their model; without it, the file answers."""
        self._models = models
        self._tokens = tokens
        self._moment = moment
        self._columns = columns
        self._held = held

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when the store has no vectors."""
        if self._held is not None:
            return self._held[1].dimensions
        with self._file() as connection:
            return sqlite_vectors.dimensions(connection)

    @property
    def from_file(self) -> bool:
        """Whether the file answers: there is no segment, or its vectors are of another model."""
        return self._held is None

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
        if self._held is not None:
            return self._held[1].nearest(query, limit, scope, level)
        index = self._moment.database.vector_index
        use_index = index is not None and self._models.vector_index.answers(len(self._columns.chunks))
        with self._file() as connection:
            return sqlite_vectors.nearest(
                connection, self._columns, query, limit, scope, level, index if use_index else None
            )

    def nearest_chunks(self, queries: Vectors, limit: int) -> list[tuple[Ids, Column]]:
        """The chunks nearest to each of some unit vectors: see `VectorMatrix.nearest_chunks`."""
        if self._held is not None:
            return self._held[1].nearest_chunks(queries, limit)
        with self._file() as connection:
            return [nearest_exact(connection, query, limit) for query in queries]

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of chunks, or the mean directions of memories: see `VectorMatrix.vectors`."""
        if self._held is not None:
            return self._held[1].vectors(ids)
        with self._file() as connection:
            return sqlite_vectors.vectors(connection, self._columns, ids)

    @property
    def listed(self) -> ListedMatrix | None:
        """The vectors with inverted lists, if the store is large enough to have them."""
        matrix = self._held[1] if self._held else None
        return matrix if isinstance(matrix, ListedMatrix) else None

    def advanced(
        self,
        moment: ReadPoint,
        connection: Connection,
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
        held = None
        # Vectors of another model are not comparable with these.
        if self._held is not None and get_meta(connection, MODEL) == self._held[0]:
            chunks, vectors = loading.load_vectors(connection, put)
            held = self._held[0], self._held[1].replaced(outdated, chunks, columns.parents(chunks), vectors)
        return SnapshotVectors(moment, columns, self._models, tokens, held)

    @contextmanager
    def _file(self) -> Iterator[Connection]:
        """A connection inside a read of one state: of this one, unless this thread sees another."""
        with opening(), self._moment.read() as (connection, _):
            yield connection
