"""What the product asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from config.exchange import Column, Ids, Tokens, Vectors


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


@runtime_checkable
class TokenModel(Protocol):
    """What an embedder offers besides when its vectors are means of static token vectors (features C1, R1).

    Token numbers then tell everything about a text: stores keep those of passages, for late interaction and for the
    document frequencies that weigh the tokens of queries.
    """

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """The token numbers of each text in text order, repeats included."""

    def pool_documents(self, texts: Sequence[Tokens]) -> Vectors:
        """What `embed_documents` gives for texts of these tokens."""

    def pool_query(self, tokens: Tokens, factors: Column) -> Vectors:
        """The unit vector of a query, each token's own weight times its factor, which is positive; shape
        (dimensions,)."""

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions)."""
