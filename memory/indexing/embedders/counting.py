"""How many tokens a text costs its reader: the one way of counting of the product (features A6, T24)."""

from __future__ import annotations

from collections.abc import Sequence

from config.errors import SpeckitError
from memory.indexing.embedders.protocol import Embedder, TokenCounter
from memory.indexing.token_estimate import estimated_tokens


def counted_tokens(texts: Sequence[str], model: Embedder | None = None) -> list[int]:
    """The tokens of each text: by the tokeniser beside the model, else estimated by script.

    The bundled tokeniser has 32,000 tokens; those of large language models have several times as many and count less.
    So both ways are on the safe side. A tokeniser that cannot be read is no reason to fail.
    """
    if isinstance(model, TokenCounter):
        try:
            return model.count_tokens(texts)
        except SpeckitError:
            pass  # what is wrong with it is told where vectors are asked for
    return [estimated_tokens(text) for text in texts]
