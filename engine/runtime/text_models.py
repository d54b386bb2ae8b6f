"""The models and the analyser that read texts."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE, EMBEDDER_VARIABLE
from speckit_memory.engine.background.lazy import Lazy
from speckit_memory.memory.models import crossencoders, embedders
from speckit_memory.memory.parsing.analysis import Analyser

if TYPE_CHECKING:
    pass


class TextModels:
    """The models that process text, independent of a store. Each is loaded on first use."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ`: environment variables, which may name models."""
        self.guard = RLock()
        self._environ = environ
        self._local: dict[str, embedders.Embedder] = {}

    @Lazy
    def embedder(self) -> embedders.Embedder:
        """The embedding model that the environment names, else the bundled one; loaded on first use (feature I6)."""
        return embedders.chosen(self._environ)

    @Lazy
    def encoder(self) -> embedders.Embedder | None:
        """The second-stage encoder, if the environment names one (feature R1)."""
        return embedders.encoder_of(self._environ)

    @property
    def named(self) -> str:
        """The embedding model that the environment names, "" for none."""
        return self._environ.get(EMBEDDER_VARIABLE, "")

    def is_named(self, name: str) -> bool:
        """Whether the environment names this model."""
        return self.named == name

    def local(self, name: str) -> embedders.Embedder | None:
        """A model named in a store; None unless it needs only files of this account.

        Paths and services are taken from the environment, never from a store, which may come from anyone.
        """
        if name != embedders.NAME and not name.startswith("fastembed:"):
            return None
        with self.guard:
            if name not in self._local:
                self._local[name] = embedders.of_setting(name, self._environ)
            return self._local[name]

    def of(self, name: str) -> embedders.Embedder:
        """The model of a name that a user gave; the environment's own object if the names are equal."""
        if self.is_named(name):
            return self.embedder
        return self.local(name) or embedders.of_setting(name, self._environ)

    @Lazy
    def analyser(self) -> Analyser:
        """The analyser that splits documents and queries into terms."""
        return Analyser()

    @Lazy
    def cross_encoder(self) -> crossencoders.NoCrossEncoder | crossencoders.GuardedCrossEncoder:
        """The cross-encoder, if the environment names one (feature R1)."""
        return crossencoders.chosen(self._environ.get(CROSS_ENCODER_VARIABLE, ""))
