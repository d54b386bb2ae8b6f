"""Adds the token vectors of the token model to an embedder that has none (features I6, R1)."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.memory.models.embedders.protocol import TokenModel
from speckit_memory.pipeline.ports import Ids, Tokens, Vectors


class BesideTokens:
    """Delegates tokens and their vectors to the token model."""

    def __init__(self, tokens: TokenModel) -> None:
        self._tokens = tokens

    @property
    def token_model_id(self) -> str:
        """The id of the token model."""
        return self._tokens.token_model_id

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token ids of each text by the token model."""
        return self._tokens.tokenise(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by the token model."""
        return self._tokens.count_tokens(texts)

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Return unit rows of the token model."""
        return self._tokens.token_vectors(tokens)
