"""Token vectors beside a model that has none of its own (features I6, R1)."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.memory.models.embedders.protocol import TokenModel
from speckit_memory.pipeline.ports import Ids, Tokens, Vectors


class BesideTokens:
    """Tokens and their vectors from the token model, as without any other model."""

    def __init__(self, tokens: TokenModel) -> None:
        self._tokens = tokens

    @property
    def token_model_id(self) -> str:
        """That of the token model."""
        return self._tokens.token_model_id

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """The token numbers of each text by the token model."""
        return self._tokens.tokenise(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has by the token model."""
        return self._tokens.count_tokens(texts)

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows of the token model."""
        return self._tokens.token_vectors(tokens)
