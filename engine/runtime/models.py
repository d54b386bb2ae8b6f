"""The analyser and the models that process the queries of one store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from speckit_memory.config.workspace.options import VectorIndexing
from speckit_memory.engine.runtime.serving_models import EmbedderFacets, model_facts
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder, NoCrossEncoder
from speckit_memory.memory.models.embedders import Embedder, TokenModel, counted_tokens
from speckit_memory.memory.models.passage_vectors import weighted_query
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Unavailable, Vectors

T = TypeVar("T")


class QueryModels:
    """The text models for queries. Implements `memory.store.read_model.state.models.Models`.

    An embedder that fails, or that did not make the store's vectors or tokens, is reported as `Unavailable` with a
    reason.
    """

    def __init__(
        self,
        database: Database,
        current: Callable[[], EmbedderFacets],
        analyser: Analyser,
        relevance: NoCrossEncoder | GuardedCrossEncoder,
        vector_index: VectorIndexing,
        encoder: Embedder | None = None,
    ) -> None:
        """`current` returns the model of the vectors in use."""
        self.vector_index = vector_index
        self.relevance = relevance
        self.encoder = encoder
        self.analyse = analyser.tokens
        self._database = database
        self._current = current

    @property
    def static(self) -> bool:
        """Whether vectors are means of token vectors."""
        return self._current().pooling is not None

    def embed(self, text: str, rarity: Callable[[Ids], Column]) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,) float32: see `weighted_query`."""
        serving = self._current()
        return self._guarded(vectors.MODEL, lambda: serving.embedder.model_id, lambda: _embedded(serving, text, rarity))

    def tokens(self, text: str) -> Ids | Unavailable:
        """The token ids of a query in order; Unavailable if the model has no token vectors."""
        model = self._current().tokens
        if model is None:
            return Unavailable("the configured model has no token vectors")
        return self._guarded(token_sets.MODEL, lambda: model.token_model_id, lambda: _cut(model, text).astype(np.int64))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text for a language model, independent of the store's model."""
        return counted_tokens(texts, self._current().embedder)

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions) float32; shape (n, 0) if the model has no token vectors."""
        model = self._current().tokens
        return np.empty((len(tokens), 0), np.float32) if model is None else model.token_vectors(tokens)

    def _guarded(self, fact: str, configured: Callable[[], str], work: Callable[[], T]) -> T | Unavailable:
        """The result of `work` if the store's `fact` names the configured model."""
        try:
            stored, model = model_facts(self._database).get(fact), configured()
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


def _embedded(serving: EmbedderFacets, text: str, rarity: Callable[[Ids], Column]) -> Vectors:
    if serving.tokens is None or serving.pooling is None:
        return serving.embedder.embed_query(text)
    return weighted_query(serving.pooling, _cut(serving.tokens, text), rarity)


def _cut(model: TokenModel, text: str) -> Tokens:
    """The tokens of a text."""
    return model.tokenise([text])[0]
