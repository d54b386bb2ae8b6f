"""A second model for stores that change theirs: small, exact, and at hand in every process."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from speckit_memory.memory.models.embedders.encoder import BesideTokens
from speckit_memory.memory.models.embedders.protocol import Provenance
from speckit_memory.pipeline.ports import Vectors
from tests.attacks.fuzz.shared import model

NAME = "fastembed:tiny"


class SecondModel(BesideTokens):
    """Vectors of sixteen numbers by the digests of words. Implements `Embedder` and `Stamped`."""

    model_id = "tiny-1"
    dimensions = 16
    provenance = Provenance(NAME, "1", "sum")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Rows of length one, of zeros for a text without words."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for at, text in enumerate(texts):
            for word in text.lower().split():
                rows[at, sha256(word.encode()).digest()[0] % self.dimensions] += 1.0
        lengths: Vectors = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Vectors = (rows / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit

    def embed_query(self, text: str) -> Vectors:
        """As a document."""
        row: Vectors = self.embed_documents([text])[0]
        return row


def second_model() -> SecondModel:
    """One with the tokens of the bundled model."""
    return SecondModel(model())
