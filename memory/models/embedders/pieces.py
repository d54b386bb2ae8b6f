"""Tokenises many texts piece by piece, each distinct piece once (feature I6).

In a SentencePiece vocabulary, no token has a blank after another character, a line end, or an ASCII letter next to
another ASCII symbol. So the tokens of a text are those of its pieces between these borders. Texts repeat pieces, and a
look-up takes a tenth of the time of tokenising the whole text.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from speckit_memory.pipeline.ports import Tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

T = TypeVar("T")

BLANK = "▁"
"""Replaces blanks in tokens, and precedes every text."""
MOST_PIECES = 100_000
"""Pieces cached (about 20 MB) before the cache is cleared."""
LONGEST_PIECE = 64
"""Characters of a cached piece; longer ones rarely recur."""
MOST_LINES = 5_000
LONGEST_LINE = 2_000
"""Lines whose number of tokens is cached, and the characters of such a line: at most 10 MB."""

_SIGN = r"[!-@\[-`{-~]"
_PIECE = re.compile(
    rf"(?:[ {BLANK}]++|\n++)?+"
    rf"(?:[A-Za-z]++(?={_SIGN}|[ {BLANK}\n]|\Z)|{_SIGN}++(?=[A-Za-z {BLANK}\n]|\Z)|[^ {BLANK}\n]++)|[ {BLANK}]++|\n++"
)
"""Blanks or line ends and the run after them: ASCII letters, ASCII symbols, or a mixed run with other characters."""
_BORDER = re.compile(rf"[A-Za-z]{_SIGN}|{_SIGN}[A-Za-z]")
_CROSSING = re.compile(rf"[^{BLANK}]{BLANK}|\n")
_PROBE = f"a  b\n{BLANK}c"


class Pieces:
    """Tokenises texts with a tokeniser for which `divisible` is true. Safe to share between threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._model = tokenizer.model
        # from pieces to their token ids as uint16 bytes, and from lines to their number of tokens
        self._numbers = _Cache(self._cut, MOST_PIECES, LONGEST_PIECE)
        self._counts = _Cache(self._count, MOST_LINES, LONGEST_LINE)
        # Added tokens match anywhere in a text, also across the borders of pieces.
        self._added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]

    def tokens(self, text: str) -> Tokens | None:
        """Return the token ids of a text in text order; None for a text that must be tokenised as a whole."""
        if any(added in text for added in self._added):
            return None
        pieces = _PIECE.findall(BLANK + text) if text else []
        # Joins the cached uint16 bytes of all pieces; a bytearray keeps the array writable.
        return np.frombuffer(bytearray().join(map(self._numbers.__getitem__, pieces)), np.uint16)

    def count(self, text: str) -> int | None:
        """Return the number of tokens of a text, or None as `tokens` does.

        No piece continues over a line end, which is one token itself. Texts that are shortened to a budget are counted
        again and again with the same lines, so the last ones are cached.
        """
        if any(added in text for added in self._added):
            return None
        lines = (BLANK + text if text else "").split("\n")
        return len(lines) - 1 + sum(map(self._counts.__getitem__, lines))

    def _cut(self, piece: str) -> bytes:
        # uint16 suffices for a vocabulary of 32,000 tokens.
        return array("H", [token.id for token in self._model.tokenize(piece.replace(" ", BLANK))]).tobytes()

    def _count(self, line: str) -> int:
        return sum(map(len, map(self._numbers.__getitem__, _PIECE.findall(line)))) // 2


def divisible(tokenizer: Tokenizer) -> bool:
    """Whether the tokens of every text are those of its pieces: see the module docstring."""
    from tokenizers.models import BPE

    model, normalizer = tokenizer.model, tokenizer.normalizer
    if not isinstance(model, BPE) or tokenizer.pre_tokenizer is not None or normalizer is None:
        return False
    if model.dropout or not model.byte_fallback or model.continuing_subword_prefix or model.end_of_word_suffix:
        return False
    if any(token.normalized for token in tokenizer.get_added_tokens_decoder().values()):
        return False  # it is matched in the normalised text, not in the given one
    if normalizer.normalize_str(_PROBE) != BLANK + _PROBE.replace(" ", BLANK):
        return False
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    # A character without a token becomes its bytes; if one were missing, neighbours would merge into one token.
    bytes_known = all(f"<0x{byte:02X}>" in vocabulary for byte in range(256))
    return bytes_known and BLANK in vocabulary and _crossing(vocabulary) is None


def _crossing(vocabulary: Collection[str]) -> str | None:
    """Return a token that extends across the start of a piece or a border in it; None if there is none.

    Names of bytes, such as <0x2B>, contain borders, but no merge of two tokens produces them.
    """
    crossing: Iterator[str] = (
        token
        for token in vocabulary
        if _CROSSING.search(token) or (_BORDER.search(token) and _is_made(token, vocabulary))
    )
    return next(crossing, None)


def _is_made(token: str, vocabulary: Collection[str]) -> bool:
    """Whether two tokens merge into this one; other tokens never result from a text."""
    return any(token[:at] in vocabulary and token[at:] in vocabulary for at in range(1, len(token)))


class _Cache(dict[str, T]):
    """What was made of texts, filled on demand and cleared when full."""

    def __init__(self, make: Callable[[str], T], most: int, longest: int) -> None:
        super().__init__()
        self._make = make
        self._most = most
        self._longest = longest

    def __missing__(self, text: str) -> T:
        made = self._make(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = made
        return made
