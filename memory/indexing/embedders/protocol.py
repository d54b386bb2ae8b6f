"""What the product asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from config.exchange import Vectors


class Embedder(Protocol):
    """Turns texts into unit vectors. Implementations are safe to share between threads.

    Equal texts give equal vectors, alone or in a batch, now and in another process: stores cache them under `model_id`.
    Failures are `SpeckitError` E001.
    """

    @property
    def model_id(self) -> str:
        """Names the model, its weights and the way texts are put to it; vectors of different ids never mix."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), dimensions); a row of zeros for a text with no known token."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimensions,); zeros when no token is known."""
