"""One open store with everything that reads and writes it."""

from __future__ import annotations

import os
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from speckit_memory.config.workspace.options import SHIPPED_INDEXING, EntityLinking, VectorIndexing
from speckit_memory.engine.background.lazy import Lazy
from speckit_memory.engine.recording.observations import digest_of
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.models import ActiveModels, QueryModels
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.runtime.usage_counter import Usage
from speckit_memory.memory.models import embedders
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import Indexer
    from speckit_memory.memory.store.segment_files.container import Container


class OpenStore:
    """One open file with everything that reads and writes it. Parts are built on first use."""

    def __init__(
        self,
        database: Database,
        root: Path,
        models: TextModels,
        recorder: Recorder,
        vector_index: VectorIndexing = SHIPPED_INDEXING,
        entities: EntityLinking = "off",
    ) -> None:
        """Wraps an open database.

        Args:
            database: The store's file.
            root: The folder that keys of memories are relative to.
            models: The text models.
            recorder: Records searches.
            vector_index: The size from which on vectors are indexed.
            entities: Whether background work links memories that share names.
        """
        self.guard = RLock()
        self.name = uuid4().hex
        """A random identifier of this opening of the store."""
        self.database = database
        self.usage = Usage(database)
        self.recorder = recorder
        self.vector_index = vector_index
        self.entities = entities
        self.root = root
        self._models = models

    @property
    def embedder(self) -> embedders.Embedder:
        """The model of the vectors in use."""
        return self.models.now().embedder

    @property
    def encoder(self) -> embedders.Embedder | None:
        """The second-stage encoder, if one is named."""
        return self._models.encoder

    @property
    def counter(self) -> embedders.Embedder:
        """A model that counts tokens; independent of the file."""
        return self._models.embedder

    @Lazy
    def models(self) -> ActiveModels:
        """The models of the vectors in use and of the configured ones."""
        return ActiveModels(self.database, self._models)

    @property
    def analyser(self) -> Analyser:
        """The analyser that splits text into terms."""
        return self._models.analyser

    @Lazy
    def place(self) -> str:
        """The store's identifier in records of queries: a hash of its path, equal in every process."""
        return digest_of(os.path.realpath(self.database.path))

    @Lazy
    def read_model(self) -> ReadModel:
        """The in-memory view that queries run on."""
        models = QueryModels(
            self.database,
            self.models.now,
            self.analyser,
            self._models.cross_encoder,
            self.vector_index,
            self._models.encoder,
        )
        return ReadModel(self.database, models, _build_in_memory)

    def renew(self) -> None:
        """Switches later queries to the segment file on disk."""
        read_model: ReadModel | None = vars(self).get("read_model")
        if read_model is not None:
            read_model.renew()

    @property
    def indexer(self) -> Indexer:
        """The writer of documents, with the configured embedding model."""
        return self._writer(self.models.wanted())

    @property
    def saver(self) -> Indexer:
        """The writer of single documents, with the model of the vectors in use."""
        return self._writer(self.embedder)

    def model(self, name: str) -> embedders.Embedder:
        """The model of a name that a user gave."""
        return self._models.of(name)

    @Lazy
    def indexer_without_model(self) -> Indexer:
        """A writer that leaves embedding to later work."""
        return self._writer(None)

    def _writer(self, embedder: embedders.Embedder | None) -> Indexer:
        # imported here: searches load no indexing code
        from speckit_memory.memory.indexing import Indexer

        return Indexer(self.database, embedder, self.analyser, self.root)


def _build_in_memory(connection: Any) -> Container:
    # imported here: searches of a store with a segment write none
    from speckit_memory.memory.store.segment_writing.building import build_in_memory

    return build_in_memory(connection)
