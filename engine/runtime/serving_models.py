"""Which model a store is searched and filled by: that of its vectors, as long as nobody has put others in their place.

Another process may do that at any time, so that the store is asked each time. What the environment names is the model
that the next index run changes to; until then the old vectors serve (feature I6).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import NAME, Embedder, PoolingModel, TokenModel
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import table_exists
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import embedding_models, vectors

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.text_models import TextModels


class Serving(NamedTuple):
    """An embedder, and the same once more as what it is besides. Testing for that takes longer than cutting a query."""

    embedder: Embedder
    pooling: PoolingModel | None
    tokens: TokenModel | None


def serving(embedder: Embedder) -> Serving:
    """An embedder with what it is besides."""
    return Serving(
        embedder,
        embedder if isinstance(embedder, PoolingModel) else None,
        embedder if isinstance(embedder, TokenModel) else None,
    )


class ServingModels:
    """The models of one store. Safe to share between threads."""

    def __init__(self, database: Database, models: TextModels) -> None:
        self._database, self._models = database, models
        self._known: dict[str, Serving] = {}
        self._others: dict[int, Serving] = {}

    def now(self) -> Serving:
        """The model of the vectors in use; where that cannot be had here, the one that is wanted."""
        connection = self._database.reader()
        stored = get_meta(connection, vectors.MODEL) or ""
        found = self._known.get(stored)
        if found is not None:
            return found
        wanted = self.wanted()
        stamp = _stamp(connection, stored)
        for embedder in (wanted, self._models.local(stamp.name) if stamp else None):
            if embedder is not None and _is(embedder, stored):
                self._known[stored] = serving(embedder)
                return self._known[stored]
        return self._others.setdefault(id(wanted), serving(wanted))

    def wanted(self) -> Embedder:
        """The model that an index run changes to: the one that the environment names, else the one that was chosen for
        the store, else the bundled one."""
        if self._models.named:
            return self._models.embedder
        connection = self._database.reader()
        chosen = embedding_models.choice(connection)
        return (self._models.local(chosen) if chosen else None) or self._models.embedder

    def is_named(self, name: str) -> bool:
        """Whether the environment names this model."""
        return self._models.is_named(name)

    def unsettled(self) -> str:
        """What is not as it is wanted, for readers of an answer: vectors of another model are made or begun, or another
        model is wanted than answers, or it cannot be had. "" when all is settled."""
        connection = self._database.reader()
        found = embedding_models.build(connection) if table_exists(connection, "embedding_build") else None
        if found is not None:
            return _told(found)
        stored, wanted = get_meta(connection, vectors.MODEL), self.wanted()
        if stored is None or not (served := self._known.get(stored)) or served.embedder is wanted:
            return ""
        stamp = _stamp(connection, stored)
        answering = f"vectors of {stamp.name if stamp else stored} answer"
        if self._models.named:
            by = f"{EMBEDDER_VARIABLE} names {self._models.named}"
        elif chosen := embedding_models.choice(connection):
            by = f"{chosen} was chosen for the store"
        else:
            by = f"no model is named or chosen but the one that is {NAME}"
        try:
            if wanted.model_id == stored:
                return ""
        except SpeckitError as error:
            return f"{answering}; {by}, which cannot be used: {error.problems[0].message}"
        return f"{answering}; {by}, another model: `speckit-memory index PATH` changes to it"


def _told(build: embedding_models.Build) -> str:
    """How far vectors are that are made beside those in use."""
    passages = f"{build.done:,} of {build.total:,} passages"
    if embedding_models.at_work(build, time.time()):
        return f"vectors of {build.name} are being made: {passages}; those of before answer until then"
    return f"vectors of {build.name} are made for {passages} and not in use; those of before answer"


def _is(embedder: Embedder, model_id: str) -> bool:
    try:
        return embedder.model_id == model_id
    except SpeckitError:
        return False


def _stamp(connection: Connection, model_id: str) -> embedding_models.Stamp | None:
    """What is known of the model; of the bundled one in a store from before there were stamps, its name."""
    if table_exists(connection, "embedding_models") and (found := embedding_models.stamp_of(connection, model_id)):
        return found
    return embedding_models.Stamp(model_id, "bundled", "", "", 1) if model_id.startswith("static-") else None
