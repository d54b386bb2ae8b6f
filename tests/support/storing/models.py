"""Models small enough to be followed by hand: a word is a token, and tokens point along axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speckit_memory.config.workspace.options import SHIPPED_INDEXING
from speckit_memory.memory.store.read_model.state.models import Rarity, Relevance
from speckit_memory.pipeline.ports import Ids, Tokens, Unavailable, Vectors

WORDS = ("alpha", "beta", "gamma", "delta")


class WordModels:
    """Implements the read model's `Models`. The token of a word is its place in `WORDS`, unknown words have none.

    The vector of a query is the sum of its words' axes, each as long as the word is rare.
    """

    def __init__(self, relevance: Relevance | None = None) -> None:
        self.relevance = relevance or NoRelevance()
        self.static = True
        self.encoder = None
        self.vector_index = SHIPPED_INDEXING

    def analyse(self, text: str) -> tuple[str, ...]:
        return tuple(text.casefold().split())

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        return [tokens[0] if len(tokens := self.analyse(word)) == 1 else None for word in words]

    def embed(self, text: str, rarity: Rarity) -> Vectors | Unavailable:
        tokens = self.tokens(text)
        if not len(tokens):
            return Unavailable(f"no model for {text!r}")
        vector = (self.token_vectors(tokens) * rarity(tokens)[:, None]).sum(axis=0)
        unit: Vectors = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit

    def tokens(self, text: str) -> Ids:
        return np.array([WORDS.index(word) for word in self.analyse(text) if word in WORDS], np.int64)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(self.analyse(text)) for text in texts]

    def token_vectors(self, tokens: Ids) -> Vectors:
        return np.eye(len(WORDS), dtype=np.float32)[tokens]


class NoRelevance:
    def score(self, query: str, texts: object, deadline_ns: int | None) -> Unavailable:
        return Unavailable("no cross-encoder")


def token_sets(*texts: str) -> list[Tokens]:
    """What a store is given beside the vectors of these passages."""
    return [np.unique(WordModels().tokens(text)).astype(np.uint16) for text in texts]
