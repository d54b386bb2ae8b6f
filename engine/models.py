"""The analyser and the models behind the queries of one store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from config.errors import SpeckitError
from config.exchange import Column, Ids, Unavailable, Vectors
from memory.indexing import Analyser
from memory.indexing.crossencoders import GuardedCrossEncoder, NoCrossEncoder
from memory.indexing.embedders import Embedder, TokenModel
from memory.indexing.embedding import embed_query
from memory.store.connection import Database
from memory.store.meta import get_meta
from memory.store.vectors import MODEL

T = TypeVar("T")


class QueryModels:
    """What queries are cut and embedded by. Implements `memory.store.models.Models`.

    An embedder that fails, or that did not make the vectors of the store, is an absence with a reason.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        analyser: Analyser,
        relevance: NoCrossEncoder | GuardedCrossEncoder,
    ) -> None:
        self.relevance = relevance
        self.analyse = analyser.tokens
        self._database = database
        self._embedder = embedder

    def embed(self, text: str, rarity: Callable[[Ids], Column]) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,): see `embed_query`."""
        return self._guarded(lambda: embed_query(self._embedder, text, rarity))

    def tokens(self, text: str) -> Ids | Unavailable:
        """The token numbers of a query in order; Unavailable when the model's vectors are not made of tokens."""
        model = self._embedder
        if not isinstance(model, TokenModel):
            return Unavailable("the vectors of the configured model are not made of token vectors")
        return self._guarded(lambda: model.tokenise([text])[0].astype(np.int64))

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions); rows of zeros when the model's vectors are not made of tokens."""
        model = self._embedder
        if not isinstance(model, TokenModel):
            return np.zeros((len(tokens), model.dimensions), np.float32)
        return model.token_vectors(tokens)

    def _guarded(self, work: Callable[[], T]) -> T | Unavailable:
        try:
            stored = get_meta(self._database.reader(), MODEL)
            if stored == self._embedder.model_id:
                return work()
            return Unavailable(
                f"the store holds vectors of '{stored}', the configured model is '{self._embedder.model_id}'; "
                "index with --force to embed again"
            )
        except SpeckitError as error:
            return Unavailable(error.problems[0].message)
