"""What the store asks of the analyser, the models and the settings, which are above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from speckit_memory.config.options.vector_indexing import VectorIndexing
from speckit_memory.pipeline.ports import Column, Ids, Unavailable, Vectors

Rarity = Callable[[Ids], Column]
"""The inverse document frequency of tokens, > 0."""


class Relevance(Protocol):
    """A cross-encoder: see `pipeline.ports.RelevanceModel`."""

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Relevance [0, 1] of each text, in order; NaN for the tail that the deadline left no time for."""


class QueryEncoder(Protocol):
    """A sentence encoder: see `pipeline.ports.EncoderModel`. Failures are `SpeckitError` E001."""

    @property
    def model_id(self) -> str:
        """Names the model, and whose vectors may be compared with its own."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimensions,)."""


class Models(Protocol):
    """All that turns texts into numbers while a query runs. Implementations are safe to share between threads."""

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors."""

    @property
    def vector_index(self) -> VectorIndexing:
        """Which stores have an index of their vectors, and whether it answers."""

    @property
    def relevance(self) -> Relevance:
        """The cross-encoder."""

    @property
    def encoder(self) -> QueryEncoder | None:
        """The sentence encoder of the second look, if one is named."""

    def analyse(self, text: str) -> tuple[str, ...]:
        """The words of a query in order, cut as those of documents were."""

    def embed(self, text: str, rarity: Rarity) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,); `rarity` tells what the tokens of a text are worth."""

    def tokens(self, text: str) -> Ids | Unavailable:
        """The token numbers of a query in order; Unavailable without the store's token model."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text costs its reader."""

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions)."""
