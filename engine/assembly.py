"""Puts the product together: the only module that names concrete components."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

from config.errors import SpeckitError
from config.exchange import Unavailable, Vectors
from memory.indexing import Analyser, Indexer
from memory.indexing.embedders.protocol import Embedder
from memory.indexing.embedders.static import StaticEmbedder
from memory.store.connection import Database
from memory.store.meta import get_meta
from memory.store.read_model import ReadModel
from memory.store.vectors import MODEL
from pipeline.registry import Registry


@cache
def registry() -> Registry:
    """Every component of the product and of installed extensions, frozen."""
    registry = Registry()
    # REGISTRATIONS
    registry.add_entry_points()
    return registry.freeze()


class OpenStore:
    """One open file with everything that reads and writes it. Parts come to life when they are first needed."""

    def __init__(self, database: Database, root: Path) -> None:
        """`root` is the folder that keys of memories are relative to."""
        self.database = database
        self._root = root

    @cached_property
    def embedder(self) -> Embedder:
        """The bundled offline model; its weights are read at first use (feature I6)."""
        return StaticEmbedder()

    @cached_property
    def analyser(self) -> Analyser:
        """The analyser that makes the words of documents and queries."""
        return Analyser()

    @cached_property
    def read_model(self) -> ReadModel:
        """The in-memory view that queries run on."""
        return ReadModel(self.database, self._embed_query, self.analyser.tokens)

    @cached_property
    def indexer(self) -> Indexer:
        """The writer of documents."""
        return Indexer(self.database, self.embedder, self.analyser, self._root)

    @cached_property
    def indexer_without_model(self) -> Indexer:
        """A writer that leaves the vectors for later."""
        return Indexer(self.database, None, self.analyser, self._root)

    def _embed_query(self, text: str) -> Vectors | Unavailable:
        """The query's vector, unless the store holds the vectors of another model."""
        stored = get_meta(self.database.reader(), MODEL)
        try:
            if stored != self.embedder.model_id:
                return Unavailable(
                    f"the store holds vectors of '{stored}', the configured model is '{self.embedder.model_id}'; "
                    "index with --force to embed again"
                )
            return self.embedder.embed_query(text)
        except SpeckitError as error:
            return Unavailable(error.problems[0].message)
