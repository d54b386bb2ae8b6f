"""The vectors of a snapshot, read when they are first asked for."""

from __future__ import annotations

import threading

import apsw

from speckit_memory.memory.store.read_model.columns import UNKNOWN, Columns
from speckit_memory.memory.store.read_model.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.models import Models
from speckit_memory.memory.store.read_model.moment import Moment
from speckit_memory.memory.store.read_model.scope import Restriction
from speckit_memory.memory.store.read_model.token_space import TokenSpace
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import MODEL
from speckit_memory.pipeline.clock import opening
from speckit_memory.pipeline.ports import Column, Ids, Level, Unavailable, Vectors
from speckit_memory.pipeline.ports.immutable import own


class VectorSpace:
    """The vectors of one state of the store, and the model that makes them. Implements `pipeline.ports.VectorSpace`."""

    __slots__ = ("_columns", "_held", "_loading", "_models", "_moment", "_tokens")

    def __init__(self, moment: Moment, columns: Columns, models: Models, tokens: TokenSpace) -> None:
        self._models = models
        self._tokens = tokens
        self._moment = moment
        self._columns = columns
        self._held: tuple[str | None, VectorMatrix] | None = None
        self._loading = threading.Lock()

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when the store holds none."""
        return self._loaded().dimensions

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors; a sentence encoder makes others."""
        return self._models.static

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query; in a mean of tokens, one counts for more the fewer passages hold it."""
        return self._models.embed(own(text), self._tokens.weights)

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """Ids, cosine similarities in [-1, 1] and best chunks: see `VectorMatrix.nearest`."""
        return self._loaded().nearest(query, limit, scope, level)

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of chunks, or the mean directions of memories: see `VectorMatrix.vectors`."""
        return self._loaded().vectors(ids)

    def advanced(
        self,
        moment: Moment,
        connection: apsw.Connection,
        columns: Columns,
        tokens: TokenSpace,
        outdated: Ids,
        put: Ids,
    ) -> VectorSpace:
        """The vectors of the state `columns`, without those of outdated memories, and with those of `put` ones."""
        twin = VectorSpace(moment, columns, self._models, tokens)
        if self._held is not None:
            model, matrix = self._held
            # The vectors of another model have nothing in common with these.
            if get_meta(connection, MODEL) == model:
                chunks, vectors = loading.load_vectors(connection, put)
                twin._held = model, matrix.replaced(outdated, chunks, columns.parents(chunks), vectors)
        return twin

    def _loaded(self) -> VectorMatrix:
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
