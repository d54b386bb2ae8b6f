"""How many tokens a text costs its reader: the one way of counting of the product (features A6, T24)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.protocol import Embedder, TokenCounter
from speckit_memory.memory.models.token_estimate import estimated_tokens

COUNTED_AT_ONCE = 100_000
"""Characters of a text that is counted in one piece."""


def counted_tokens(texts: Sequence[str], model: Embedder | None = None) -> list[int]:
    """The tokens of each text: by the tokeniser beside the model, else estimated by script.

    The bundled tokeniser has 32,000 tokens; those of large language models have several times as many and count less.
    So both ways are on the safe side. A tokeniser that cannot be read is no reason to fail.
    """
    if isinstance(model, TokenCounter):
        try:
            if max(map(len, texts), default=0) <= COUNTED_AT_ONCE:
                return model.count_tokens(texts)
            return [sum(model.count_tokens([piece])[0] for piece in _pieces(text)) for text in texts]
        except SpeckitError:
            pass  # what is wrong with it is told where vectors are asked for
    return [estimated_tokens(text) for text in texts]


def _pieces(text: str) -> Iterator[str]:
    """A long text in parts, cut at blanks where there are some: what a tokeniser makes of a text takes many times its
    room."""
    start = 0
    while len(text) - start > COUNTED_AT_ONCE:
        blank = text.rfind(" ", start + COUNTED_AT_ONCE // 2, start + COUNTED_AT_ONCE)
        end = blank if blank >= 0 else start + COUNTED_AT_ONCE
        yield text[start:end]
        start = end
    yield text[start:]
