"""Counts the tokens of texts for their readers; the only token count of the product (features A6, T24)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.protocol import Embedder

# Estimates the number of language-model tokens of a text by its scripts, without a tokeniser.
#
# "Four characters per token" only holds for English prose: code has three, minified JSON two, timestamps one and a
# half, and a Chinese or Japanese character takes more than one token. So the pieces that a tokeniser would see are
# counted by kind. The cost of each kind was fitted to the bundled tokeniser and rounded up: over whole texts of any
# kind the estimate is at most 5 % too low and 20 % too high (docs/decisions/0019-answers-in-markdown.md).


class _Kind(NamedTuple):
    """A kind of text piece. Each match of `pattern` costs `tokens`, plus `further` per character after `free`."""

    pattern: str
    tokens: float
    further: float = 0.0
    free: int = 0


_KINDS = {
    "random": _Kind(r"(?=[A-Za-z]{0,19}[0-9])[A-Za-z0-9]{20,}", 0.0, 0.92),
    "capitals": _Kind(r"[A-Z]{2,}(?![a-z])", 0.8, 0.55),
    "word": _Kind(r"[A-Za-z][a-z]*", 1.2, 0.15, 4),
    "digit": _Kind(r"[0-9]", 1.1),
    "quotes": _Kind(r"""["'][:,)\]}]+["'(\[{]?""", 1.1),
    "blank": _Kind(r" ", 0.0),
    "space": _Kind(r"\s+", 1.6),
    "line": _Kind(r"-{2,}|={2,}|\*{2,}|#{2,}|_{2,}|~{2,}|\.{2,}|/{2,}|`{2,}", 1.0, 0.1),
    "sign": _Kind(r"[!-/:-@\[-`{-~]", 0.9),
    "latin": _Kind(r"[\u00a0-\u024f]", 2.5),
    "letter": _Kind(r"[\u0250-\u052f]", 0.45),
    "dash": _Kind(r"[\u2000-\u206f]", 1.3),
    "symbol": _Kind(r"[\u1d00-\u1dff\u2070-\u2bff]", 2.1),
    "han": _Kind(r"[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]", 1.35),
    "hangul": _Kind(r"[\uac00-\ud7af]", 2.0),
    "other": _Kind(r"[\u0530-\uffff]", 1.25),
    "control": _Kind(r"[\x00-\x1f\x7f-\x9f]", 2.0),
    "beyond": _Kind(r".", 6.0),
}
"""The kinds, in matching order."""
# Alternatives are tried from left to right at each position: an earlier kind wins, however short its match.
_PIECES = re.compile("|".join(f"(?P<{name}>{kind.pattern})" for name, kind in _KINDS.items()), re.DOTALL)


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text, in time linear in its length."""
    total = 0.0
    for piece in _PIECES.finditer(text):
        # lastgroup is the kind: the patterns have no named groups.
        kind = _KINDS[str(piece.lastgroup)]
        total += kind.tokens
        if kind.further:
            total += kind.further * max(0, piece.end() - piece.start() - kind.free)
    return math.ceil(total)


COUNTED_AT_ONCE = 100_000
"""Characters of a text counted in one piece."""


def counted_tokens(texts: Sequence[str], model: Embedder | None = None) -> list[int]:
    """Return the number of tokens of each text: by the model's tokeniser, else estimated by script.

    Tokenisers of large language models have several times the bundled one's 32,000 tokens and so count fewer: both ways
    err on the high side. If the tokeniser cannot be read, the estimate is used.
    """
    count: Callable[[Sequence[str]], list[int]] | None = getattr(model, "count_tokens", None)
    if count:
        try:
            if max(map(len, texts), default=0) <= COUNTED_AT_ONCE:
                return count(texts)
            return [sum(count([piece])[0] for piece in _pieces(text)) for text in texts]
        except SpeckitError:
            pass  # the error is reported when vectors are requested
    return [estimated_tokens(text) for text in texts]


def _pieces(text: str) -> Iterator[str]:
    """Yield a long text in parts, split at blanks if possible, since tokenising takes many times the memory of a
    text."""
    start = 0
    while len(text) - start > COUNTED_AT_ONCE:
        # Only in the second half of the piece, so that a blank near its start makes no tiny one.
        blank = text.rfind(" ", start + COUNTED_AT_ONCE // 2, start + COUNTED_AT_ONCE)
        end = blank if blank >= 0 else start + COUNTED_AT_ONCE
        yield text[start:end]
        start = end
    yield text[start:]
