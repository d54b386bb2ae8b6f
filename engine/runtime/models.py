"""The models of one store: the embedding model of the vectors in use, and what processes queries.

Another process may change the vectors at any time, so the store is read on every call. The next index run switches to
the model that the environment names; until then the old vectors serve (feature I6).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from speckit_memory.config.workspace.options import VectorIndexing
from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder, NoCrossEncoder
from speckit_memory.memory.models.embedders import NAME, Embedder, PoolingModel, TokenModel, counted_tokens
from speckit_memory.memory.models.passage_vectors import weighted_query
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import table_exists
from speckit_memory.memory.store.tables.meta import get_metas
from speckit_memory.memory.store.tables.vectors import embedding_models, vectors
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Unavailable, Vectors

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.text_models import TextModels

_FACTS = (vectors.MODEL, token_sets.MODEL, embedding_models.CHOICE)


class EmbedderFacets(NamedTuple):
    """An embedder and its optional interfaces. `isinstance` checks of these take longer than tokenising a query."""

    embedder: Embedder
    pooling: PoolingModel | None
    tokens: TokenModel | None


def serving(embedder: Embedder) -> EmbedderFacets:
    """An embedder with its optional interfaces."""
    return EmbedderFacets(
        embedder,
        embedder if isinstance(embedder, PoolingModel) else None,
        embedder if isinstance(embedder, TokenModel) else None,
    )


def model_facts(database: Database) -> Mapping[str, str]:
    """The store's facts about its models, which a search reads once."""
    return database.once("models", partial(get_metas, keys=_FACTS))


class ActiveModels:
    """The models of one store. Thread-safe."""

    def __init__(self, database: Database, models: TextModels) -> None:
        self._database, self._models = database, models
        # without a lock: two threads that miss an entry insert equal values
        self._known: dict[str, EmbedderFacets] = {}
        self._others: dict[int, EmbedderFacets] = {}
        self._records_builds = False

    def now(self) -> EmbedderFacets:
        """The model of the vectors in use; the configured one if that is not available here."""
        stored = model_facts(self._database).get(vectors.MODEL, "")
        found = self._known.get(stored)
        if found is not None:
            return found
        wanted = self.wanted()
        stamp = _stamp(self._database.reader(), stored)
        for embedder in (wanted, self._models.local(stamp.name) if stamp else None):
            if embedder is not None and _is(embedder, stored):
                self._known[stored] = serving(embedder)
                return self._known[stored]
        return self._others.setdefault(id(wanted), serving(wanted))

    def wanted(self) -> Embedder:
        """The model for the next index run: of the environment, else chosen for the store, else the bundled one."""
        if self._models.named:
            return self._models.embedder
        chosen = model_facts(self._database).get(embedding_models.CHOICE)
        return (self._models.local(chosen) if chosen else None) or self._models.embedder

    def is_named(self, name: str) -> bool:
        """Whether the environment names this model."""
        return self._models.is_named(name)

    def unsettled(self) -> str:
        """A warning about a model change that is not finished, "" if there is none.

        Vectors of another model are being built or were begun, or the configured model differs from the one that
        answers or is not available.
        """
        connection = self._database.reader()
        # an old store that can only be read lacks the table
        self._records_builds = self._records_builds or table_exists(connection, "embedding_build")
        found = embedding_models.build(connection) if self._records_builds else None
        if found is not None:
            return _progress_of(found)
        facts, wanted = model_facts(self._database), self.wanted()
        stored = facts.get(vectors.MODEL)
        if stored is None or not (served := self._known.get(stored)) or served.embedder is wanted:
            return ""
        stamp = _stamp(connection, stored)
        answering = f"vectors of {stamp.name if stamp else stored} answer"
        if self._models.named:
            by = f"{EMBEDDER_VARIABLE} names {self._models.named}"
        elif chosen := facts.get(embedding_models.CHOICE):
            by = f"{chosen} was chosen for the store"
        else:
            by = f"no model is configured, so the {NAME} one applies"
        try:
            if wanted.model_id == stored:
                return ""
        except SpeckitError as error:
            return f"{answering}; {by}, which cannot be used: {error.problems[0].message}"
        return f"{answering}; {by}, another model: `speckit-memory index PATH` changes to it"


def _progress_of(build: embedding_models.Build) -> str:
    """The progress of building vectors."""
    passages = f"{build.done:,} of {build.total:,} passages"
    if embedding_models.at_work(build, time.time()):
        return f"vectors of {build.name} are being made: {passages}; the previous ones answer until then"
    return f"vectors of {build.name} are made for {passages} and not in use; the previous ones answer"


def _is(embedder: Embedder, model_id: str) -> bool:
    try:
        return embedder.model_id == model_id
    except SpeckitError:
        return False


def _stamp(connection: Connection, model_id: str) -> embedding_models.ModelFingerprint | None:
    """The recorded fingerprint of a model; for the bundled one in an old store without fingerprints, its name."""
    if table_exists(connection, "embedding_models") and (found := embedding_models.stamp_of(connection, model_id)):
        return found
    return embedding_models.ModelFingerprint(model_id, "bundled", "", "", 1) if model_id.startswith("static-") else None


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
        self.analyse, self.word_tokens = analyser.tokens, analyser.word_tokens
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
