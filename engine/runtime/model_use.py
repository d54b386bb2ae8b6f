"""Changes the embedding model of a store, and back (feature I6)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import spaces
from speckit_memory.memory.indexing.batches import TRIAL
from speckit_memory.memory.indexing.spaces import EmbeddingRun, ModelChange
from speckit_memory.memory.intake.index_report import OnProgress
from speckit_memory.memory.models.passage_vectors import title_repeats
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import embedding_models, vectors
from speckit_memory.memory.store.tables.vectors.embedding_models import Build, ModelFingerprint

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.memory.models.embedders import Embedder


class StoreModels(NamedTuple):
    """The models of a store: ids of the one in use and the previous one, fingerprints by id, and a build in
    progress."""

    serving: str
    previous: str
    stamps: dict[str, ModelFingerprint]
    build: Build | None


def models(opened: OpenStore) -> StoreModels:
    """The models that a store records."""
    connection = opened.database.reader()
    return StoreModels(
        get_meta(connection, vectors.MODEL) or "",
        embedding_models.previous(connection),
        embedding_models.stamps(connection),
        embedding_models.build(connection),
    )


def build(opened: OpenStore, name: str, progress: OnProgress | None = None) -> EmbeddingRun:
    """Builds the vectors of a model while those in use go on serving.

    Raises E001 if the model does not work, and E022 while another process builds vectors.
    """
    embedder = _model_of(opened, name)
    embedder.embed_query(TRIAL)
    return spaces.build(opened.database, embedder, time.time(), progress)


def use(opened: OpenStore, name: str, progress: OnProgress | None = None) -> ModelChange:
    """Builds missing vectors and switches to the model."""
    build(opened, name, progress)
    embedder = _model_of(opened, name)
    tokens = spaces.token_model_of(embedder)
    return spaces.change(
        opened.database, spaces.stamp(embedder), title_repeats(embedder), tokens, time.time(), chosen=True
    )


def roll_back(opened: OpenStore, progress: OnProgress | None = None) -> ModelChange:
    """Switches back to the vectors before the last change. Raises E030 if there was no change.

    They are taken from the cache; vectors evicted from it are made again if the model is local, else they wait.
    """
    known = models(opened)
    if not known.previous:
        message = "the embedding model of this store was never changed: there is nothing to go back to"
        raise SpeckitError("E030", message, actions=("name a model: `speckit-memory model use NAME`",))
    stamp = known.stamps.get(known.previous)
    bundled = opened.model("bundled")
    if known.previous == bundled.model_id:
        return use(opened, "bundled", progress)
    if stamp is None:
        raise SpeckitError("E030", f"only the id of the model '{known.previous}' is recorded, not its name")
    if stamp.name.startswith("fastembed:"):
        return use(opened, stamp.name, progress)
    return spaces.change(opened.database, stamp, 1, spaces.token_model_of(bundled), time.time(), chosen=True)


def _model_of(opened: OpenStore, name: str) -> Embedder:
    """The model of a name. Raises E001 for one that searches could not call for query vectors."""
    local = name == "bundled" or name.startswith("fastembed:")
    embedder = opened.model(name)
    try:
        embedder.model_id  # noqa: B018 - reports a wrong name before any other problem
    except SpeckitError as error:
        if local or opened.models.is_named(name) or ":" in name:
            raise
        message = error.problems[0].message.replace(f"{EMBEDDER_VARIABLE} is '{name}', which", f"'{name}'")
        actions = ("run `speckit-memory model list` for names",)
        raise SpeckitError(error.code, message, hint="Nothing was changed.", actions=actions) from error
    if not local and not opened.models.is_named(name):
        raise SpeckitError(
            "E001",
            f"'{name}' is not the model that {EMBEDDER_VARIABLE} names, so searches could not use its vectors",
            hint="Paths and services are taken from the environment of a process, never from a store.",
            actions=(f"set {EMBEDDER_VARIABLE}={name}, here and for the server",),
        )
    return embedder
