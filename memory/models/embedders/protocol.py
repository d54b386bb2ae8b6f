"""The interfaces of embedding models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Vectors


class Provenance(NamedTuple):
    """The origin of vectors: the model as a user names it, its revision, and the pooling of token vectors."""

    name: str
    revision: str
    pooling: str


class Embedder(Protocol):
    """Turns texts into unit vectors. Implementations are safe to share between threads.

    Equal texts give equal vectors, alone or in a batch, now and in another process: stores cache them under `model_id`.
    Failures are `SpeckitError` E001.
    """

    @property
    def model_id(self) -> str:
        """Identifies the model, its weights and its prompts; vectors of different ids are never mixed."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows, shape (len(texts), dimensions); zeros for a text without known tokens."""

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimensions,); zeros if no token is known."""


@runtime_checkable
class FingerprintedEmbedder(Protocol):
    """An embedder that states its provenance (feature I6)."""

    @property
    def provenance(self) -> Provenance:
        """The name, revision and pooling of the model."""


@runtime_checkable
class TokenModel(Protocol):
    """A model of static vectors of single tokens (feature R1).

    Stores keep the token ids of passages in addition to their vectors, with any model: late interaction and inverse
    document frequencies need them.
    """

    @property
    def token_model_id(self) -> str:
        """Identifies the tokeniser and the token vectors; token ids of different models are never mixed."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text (feature T24). Loads only the tokeniser, not the vectors."""

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token ids of each text in text order, including repeats."""

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Return unit rows, shape (n, dimensions of the token vectors)."""


@runtime_checkable
class PoolingModel(Protocol):
    """An embedder whose vectors are weighted means of its token vectors (feature C1).

    The token ids then determine the vector of a text, and the tokens of a query can be reweighted for each store.
    """

    def pool_documents(self, texts: Sequence[Tokens]) -> Vectors:
        """Return the result of `embed_documents` for texts of these tokens."""

    def pool_query(self, tokens: Tokens, factors: Column) -> Vectors:
        """Return the unit vector of a query, shape (dimensions,); each token's weight is multiplied by its factor,
        which is positive."""


class SentenceEncoder(Protocol):
    """A neural network that reads one text at a time, so that a vector depends only on its text.

    It may raise any exception and need not be thread-safe: `EncoderEmbedder` handles both.
    """

    @property
    def name(self) -> str:
        """The display name of the model."""

    def fingerprint(self) -> str:
        """Return a digest of the weights, the tokeniser and the settings."""

    def prompts(self) -> Prompts:
        """Return the default prompts, which the user can override."""

    def pooling(self) -> str:
        """Return how token vectors are pooled."""

    def load(self) -> None:
        """Load the model if necessary."""

    def encode(self, text: str) -> Vectors:
        """Return the vector of a text, shape (dimensions,), not normalised."""
