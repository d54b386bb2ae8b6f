"""The models of a store: those that read and embed texts, and changes of the embedding model (feature I6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speckit_memory.engine.runtime import model_use
from speckit_memory.engine.runtime.model_use import StoreModels
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.memory.indexing import IndexProgress
from speckit_memory.memory.indexing.encoder_vectors import make_all
from speckit_memory.memory.indexing.spaces import EmbeddingRun, ModelChange
from speckit_memory.memory.models.embedders import Embedder, counted_tokens
from speckit_memory.memory.parsing.analysis import Analyser


@dataclass(eq=False)
class ModelService:
    """The models in use, and what is built with them."""

    session: StoreSession

    @property
    def embedder(self) -> Embedder:
        """The embedding model in use."""
        return self.session.opened.embedder

    @property
    def analyser(self) -> Analyser:
        """The analyser that splits text into terms."""
        return self.session.opened.analyser

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text for a language model, at most a few per cent too low (feature T24)."""
        return counted_tokens(texts, self.session.opened.counter)

    def load_vectors(self) -> None:
        """Builds what searches read in memory now, unless a segment has it; for processes that can afford the wait."""
        self.session.read(lambda opened: opened.read_model.load())

    def list(self) -> StoreModels:
        """The embedding models of the store: in use, earlier, and being built (feature I6)."""
        return self.session.read(model_use.models)

    def build(self, name: str, *, progress: Callable[[IndexProgress], None] | None = None) -> EmbeddingRun:
        """Builds the vectors of a model while those in use go on serving (feature I6).

        A killed process loses one batch; the next one continues. Raises E001 if the model does not work, and E022 while
        another process builds vectors.
        """
        return self.session.write(lambda opened: model_use.build(opened, name, progress), create=True)

    def use(self, name: str, *, progress: Callable[[IndexProgress], None] | None = None) -> ModelChange:
        """Builds missing vectors and switches to this model, at once and for every process. Raises as `build`."""
        changed = self.session.write(lambda opened: model_use.use(opened, name, progress), create=True)
        self.session.upkeep.saved()
        return changed

    def roll_back(self, *, progress: Callable[[IndexProgress], None] | None = None) -> ModelChange:
        """Switches back to the vectors before the last change. Raises E030 if there was no change."""
        changed = self.session.write(lambda opened: model_use.roll_back(opened, progress))
        self.session.upkeep.saved()
        return changed

    def encode(self) -> int:
        """Makes missing vectors of the second-stage encoder now instead of in background work (feature R1).

        Returns the number of vectors made; 0 if no encoder is configured. Raises SpeckitError if the encoder fails or
        the store cannot be written.
        """
        return self.session.write(lambda opened: make_all(opened.encoder, opened.database) if opened.encoder else 0)
