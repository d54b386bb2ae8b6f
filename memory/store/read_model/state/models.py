"""The ports through which the store uses the analyser, the models and the settings, which are in higher layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from speckit_memory.config.workspace.options import VectorIndexing
from speckit_memory.pipeline.ports import Column, Ids, Unavailable, Vectors

Rarity = Callable[[Ids], Column]
"""The inverse document frequency of tokens, > 0, shape (n,)."""


class Relevance(Protocol):
    """A cross-encoder: see `pipeline.ports.RelevanceModel`."""

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Relevance [0, 1] of each text, in order; NaN for the texts at the end that the deadline cut off."""


class QueryEncoder(Protocol):
    """A sentence encoder: see `pipeline.ports.EncoderModel`. Failures are `SpeckitError` E001."""

    @property
    def model_id(self) -> str:
        """Identifies the model; only vectors of the same model are comparable."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimensions,)."""


class QueryAnalyser(Protocol):
    """Cuts queries into tokens as the texts of documents were cut."""

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query in order."""

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        """The token of each word, None for a word that has none or several."""


class Models(QueryAnalyser, Protocol):
    """Everything that turns texts into numbers while a query runs. Implementations are safe to share among threads."""

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors."""

    @property
    def vector_index(self) -> VectorIndexing:
        """Which stores get an index of their vectors, and whether searches use it."""

    @property
    def relevance(self) -> Relevance:
        """The cross-encoder."""

    @property
    def encoder(self) -> QueryEncoder | None:
        """The sentence encoder for reranking, if one is configured."""

    def embed(self, text: str, rarity: Rarity) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,); `rarity` weights the tokens of a text."""

    def tokens(self, text: str) -> Ids | Unavailable:
        """The token numbers of a query in order; Unavailable without the store's token model."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens that each text costs its reader."""

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit vectors of tokens, shape (n, dimensions)."""
