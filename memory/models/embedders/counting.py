"""Counts the tokens of texts for their readers; the only token count of the product (features A6, T24)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.protocol import Embedder, TokenCounter
from speckit_memory.memory.models.token_estimate import estimated_tokens

COUNTED_AT_ONCE = 100_000
"""Characters of a text counted in one piece."""


def counted_tokens(texts: Sequence[str], model: Embedder | None = None) -> list[int]:
    """Return the number of tokens of each text: by the model's tokeniser, else estimated by script.

    Tokenisers of large language models have several times the bundled one's 32,000 tokens and so count fewer: both ways
    err on the high side. If the tokeniser cannot be read, the estimate is used.
    """
    if isinstance(model, TokenCounter):
        try:
            if max(map(len, texts), default=0) <= COUNTED_AT_ONCE:
                return model.count_tokens(texts)
            return [sum(model.count_tokens([piece])[0] for piece in _pieces(text)) for text in texts]
        except SpeckitError:
            pass  # the error is reported when vectors are requested
    return [estimated_tokens(text) for text in texts]


def _pieces(text: str) -> Iterator[str]:
    """Yield a long text in parts, split at blanks if possible, since tokenising takes many times the memory of a
    text."""
    start = 0
    while len(text) - start > COUNTED_AT_ONCE:
        blank = text.rfind(" ", start + COUNTED_AT_ONCE // 2, start + COUNTED_AT_ONCE)
        end = blank if blank >= 0 else start + COUNTED_AT_ONCE
        yield text[start:end]
        start = end
    yield text[start:]
