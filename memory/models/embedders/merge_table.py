"""Tokenises short texts without the tokeniser's library, from a table of its BPE merges (feature P10).

Parsing the tokeniser's file takes the library longer than a search. The table stores the same data in arrays that need
no parsing: the id of each character, and the rank and result of each merge of two ids. For a text it returns the ids of
the library, or None.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from speckit_memory.pipeline.ports import Tokens

BLANK = "▁"
"""Replaces blanks in tokens, and precedes every text."""
LONGEST_TEXT = 2_000
LONGEST_PIECE = 200
"""Characters. Merging here takes quadratic time; the library is better for long pieces."""
MOST_PIECES = 10_000
"""Pieces cached before the cache is cleared, and as many ranks of pairs."""

_NORMALIZER = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": BLANK},
        {"type": "Replace", "pattern": {"String": " "}, "content": BLANK},
    ],
}
_PLAIN = {
    "type": "BPE",
    "dropout": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "byte_fallback": True,
    "ignore_merges": False,
}
_PIECE = re.compile(rf"{BLANK}+[^{BLANK}\n]*|\n+[^{BLANK}\n]*")
_CROSSING = re.compile(rf"[^{BLANK}]{BLANK}|\n|.<0x0A>|<0x0A>.")
_NEVER = 0xFFFFFFFF
"""The rank of two ids that are not merged."""
_TYPES = "IHIIHH"
"""Type codes of the arrays: characters, their ids, pairs, their ranks, merged ids by rank, ids of bytes."""


class MergeTable:
    """The merge table of one tokeniser. Safe to share between threads."""

    def __init__(self, tokens: int, added: Sequence[str], arrays: Sequence[array[int]]) -> None:
        """`tokens` is the size of the vocabulary; `added` are the texts of added tokens, which match anywhere."""
        self.tokens = tokens
        self._added = tuple(added)
        self._arrays = tuple(arrays)
        self._characters, self._numbers, self._pairs, self._ranks, self._merged, self._bytes = self._arrays
        self._known: dict[str, tuple[int, ...]] = {}
        self._last: tuple[str, Tokens] = ("", np.empty(0, np.uint16))  # replaced as one tuple
        self._asked: dict[int, int] = {}  # ranks: words consist of the same few thousand pairs

    @classmethod
    def of(cls, tokeniser: Mapping[str, Any]) -> Self | None:
        """Build the table from the JSON of a tokeniser; None if its kind is not supported."""
        model, added = tokeniser["model"], tokeniser["added_tokens"]
        if any(model.get(key) != value for key, value in _PLAIN.items()):
            return None
        if tokeniser["pre_tokenizer"] is not None or tokeniser["normalizer"] != _NORMALIZER:
            return None
        vocabulary: dict[str, int] = model["vocab"]
        known_bytes = [vocabulary.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
        if min(known_bytes) < 0 or BLANK not in vocabulary or max(vocabulary.values()) > np.iinfo(np.uint16).max:
            return None
        # Pieces are tokenised independently, which is only correct if no token extends across the start of a piece.
        if any(_CROSSING.search(token) for token in vocabulary):
            return None
        # Added tokens that are matched in a modified text are not supported either.
        if any(any(map(token.get, ("lstrip", "rstrip", "normalized"))) or not token["content"] for token in added):
            return None
        ranked: dict[int, int] = {}
        merged = array("H")
        for rank, merge in enumerate(model["merges"]):
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            ranked[vocabulary[left] << 16 | vocabulary[right]] = rank  # a pair of uint16 ids as one uint32
            merged.append(vocabulary[left + right])
        # Sorted arrays, so that look-ups are binary searches without building a dict at start.
        pairs = sorted(ranked)
        characters = sorted(ord(token) for token in vocabulary if len(token) == 1)
        arrays = (
            array("I", characters),
            array("H", [vocabulary[chr(each)] for each in characters]),
            array("I", pairs),
            array("I", map(ranked.__getitem__, pairs)),
            merged,
            # ids of the bytes 0 to 255, by byte value.
            array("H", known_bytes),
        )
        tokens = len({*vocabulary, *(token["content"] for token in added)})
        return cls(tokens, [token["content"] for token in added], arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        # Format: one line of JSON (byte order, sizes), then the six arrays one after the other without padding.
        """Read a table that `to_bytes` wrote. Raises ValueError, TypeError, KeyError or IndexError for other data."""
        end = data.index(b"\n")
        header = json.loads(data[:end])
        if header["order"] != sys.byteorder:
            raise ValueError("written by another machine")
        arrays, start = [], end + 1
        for code, size in zip(_TYPES, header["bytes"], strict=True):
            arrays.append(array(code, data[start : start + size]))
            start += size
        return cls(header["tokens"], header["added"], arrays)

    def to_bytes(self) -> bytes:
        """Serialise the table for other processes on this machine."""
        parts = [each.tobytes() for each in self._arrays]
        header = {
            "order": sys.byteorder,
            "tokens": self.tokens,
            "added": self._added,
            "bytes": [len(part) for part in parts],
        }
        return b"".join((json.dumps(header).encode(), b"\n", *parts))

    def cut(self, text: str) -> Tokens | None:
        """Return the library's token ids of a text, in text order; None for a text that the library must tokenise."""
        last, tokens = self._last
        if text == last:  # the steps of a search ask for the tokens of the same text
            return tokens.copy()
        # Texts that the table does not cover: long ones, and those with added tokens.
        if len(text) > LONGEST_TEXT or any(added in text for added in self._added):
            return None
        pieces = _PIECE.findall(BLANK + text.replace(" ", BLANK)) if text else []
        if max(map(len, pieces), default=0) > LONGEST_PIECE:
            return None
        try:
            # Ids of a piece are never an empty tuple, so `or` calls `_piece` only for pieces that are not cached.
            numbers = [number for piece in pieces for number in self._known.get(piece) or self._piece(piece)]
        except UnicodeEncodeError:  # a lone surrogate, which the library does not accept either
            return None
        tokens = np.array(numbers, np.uint16)
        self._last = text, tokens.copy()
        return tokens

    def _piece(self, piece: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for character in piece:
            code = ord(character)
            at = bisect_left(self._characters, code)
            if at < len(self._characters) and self._characters[at] == code:
                numbers.append(self._numbers[at])
            else:
                # Byte fallback: a character outside the vocabulary becomes its UTF-8 bytes.
                numbers += [self._bytes[byte] for byte in character.encode()]
        found = tuple(self._merge(numbers))
        if len(self._known) >= MOST_PIECES:
            self._known = {}
        self._known[piece] = found
        return found

    def _merge(self, numbers: list[int]) -> list[int]:
        """Merge the first pair of the lowest rank until no pair can be merged (byte-pair encoding)."""
        # ranks[i] belongs to the pair (numbers[i], numbers[i + 1]); a merge only changes its neighbours.
        ranks = [self._rank(*pair) for pair in pairwise(numbers)]
        while ranks and (lowest := min(ranks)) != _NEVER:
            # index finds the leftmost of equal ranks, as byte-pair encoding requires.
            at = ranks.index(lowest)
            numbers[at : at + 2] = [self._merged[lowest]]
            del ranks[at]
            # The pair to the left now ends in the merged id, the one to the right begins with it.
            if at:
                ranks[at - 1] = self._rank(numbers[at - 1], numbers[at])
            if at < len(ranks):
                ranks[at] = self._rank(numbers[at], numbers[at + 1])
        return numbers

    def _rank(self, left: int, right: int) -> int:
        pair = left << 16 | right
        rank = self._asked.get(pair)
        if rank is None:
            at = bisect_left(self._pairs, pair)
            rank = self._ranks[at] if at < len(self._pairs) and self._pairs[at] == pair else _NEVER
            if len(self._asked) >= MOST_PIECES:
                self._asked = {}
            self._asked[pair] = rank
        return rank
