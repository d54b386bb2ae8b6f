"""The analyser and the models behind the queries of one store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from config.errors import SpeckitError
from config.exchange import Column, Ids, Unavailable, Vectors
from memory.indexing import Analyser
from memory.indexing.crossencoders import GuardedCrossEncoder, NoCrossEncoder
from memory.indexing.embedders import Embedder, PoolingModel, TokenModel
from memory.indexing.embedding import embed_query
from memory.store import token_sets, vectors
from memory.store.connection import Database
from memory.store.meta import get_meta

T = TypeVar("T")


class QueryModels:
    """What queries are cut and embedded by. Implements `memory.store.models.Models`.

    An embedder that fails, or that did not make the vectors or tokens of the store, is an absence with a reason.
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
        self.static = isinstance(embedder, PoolingModel)
        self._database = database
        self._embedder = embedder

    def embed(self, text: str, rarity: Callable[[Ids], Column]) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,): see `embed_query`."""
        model = self._embedder
        return self._guarded(vectors.MODEL, lambda: model.model_id, lambda: embed_query(model, text, rarity))

    def tokens(self, text: str) -> Ids | Unavailable:
        """The token numbers of a query in order; Unavailable when no token vectors stand beside the model."""
        model = self._embedder
        if not isinstance(model, TokenModel):
            return Unavailable("no token vectors stand beside the configured model")
        return self._guarded(
            token_sets.MODEL, lambda: model.token_model_id, lambda: model.tokenise([text])[0].astype(np.int64)
        )

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions); rows without dimensions when no token vectors stand beside the model."""
        model = self._embedder
        return model.token_vectors(tokens) if isinstance(model, TokenModel) else np.empty((len(tokens), 0), np.float32)

    def _guarded(self, fact: str, configured: Callable[[], str], work: Callable[[], T]) -> T | Unavailable:
        """The result of `work` if the store's `fact` names the configured model."""
        try:
            stored, model = get_meta(self._database.reader(), fact), configured()
            if stored == model:
                return work()
            what = "vectors" if fact == vectors.MODEL else "tokens"
            if stored is None:
                return Unavailable(f"the store holds no {what} yet; run `speckit-memory index PATH`")
            return Unavailable(
                f"the store holds {what} of '{stored}', the configured model is '{model}'; "
                "run `speckit-memory index PATH` to embed again"
            )
        except SpeckitError as error:
            return Unavailable(error.problems[0].message)
