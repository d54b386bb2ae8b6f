"""Cuts short texts without the tokeniser's library, by a table of what it merges (feature P10).

To read the tokeniser's file takes the library longer than a search. The table says the same in a form that is used as
it lies: which number each character has, and which two numbers become which one, in which order. It gives the numbers
of the library or None.
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
"""What stands for a blank in tokens, and before the beginning of a text."""
LONGEST_TEXT = 2_000
LONGEST_PIECE = 200
"""Characters. Merging takes time that grows with their square; the library has a better way for long ones."""
MOST_PIECES = 10_000
"""So many pieces are remembered; then remembering begins anew."""

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
"""The rank of two numbers that are not merged."""
_TYPES = "IHIIHH"
"""Of the arrays: characters, their numbers, pairs, their ranks, what becomes of them by rank, numbers of bytes."""


class MergeTable:
    """The table of one tokeniser. Safe to share between threads."""

    def __init__(self, tokens: int, added: Sequence[str], arrays: Sequence[array[int]]) -> None:
        """`tokens` is the size of the vocabulary; `added` are texts that mean something wherever they stand."""
        self.tokens = tokens
        self._added = tuple(added)
        self._arrays = tuple(arrays)
        self._characters, self._numbers, self._pairs, self._ranks, self._merged, self._bytes = self._arrays
        self._known: dict[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, tokeniser: Mapping[str, Any]) -> Self | None:
        """The table of a tokeniser as its file says it, None for one of another kind than is understood here."""
        model, added = tokeniser["model"], tokeniser["added_tokens"]
        if any(model.get(key) != value for key, value in _PLAIN.items()):
            return None
        if tokeniser["pre_tokenizer"] is not None or tokeniser["normalizer"] != _NORMALIZER:
            return None
        vocabulary: dict[str, int] = model["vocab"]
        known_bytes = [vocabulary.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
        if min(known_bytes) < 0 or BLANK not in vocabulary or max(vocabulary.values()) > np.iinfo(np.uint16).max:
            return None
        # pieces are cut one by one, which is the same only when no token goes on behind the beginning of a piece
        if any(_CROSSING.search(token) for token in vocabulary):
            return None
        # nor are such that are not looked for as they stand in the text
        if any(any(map(token.get, ("lstrip", "rstrip", "normalized"))) or not token["content"] for token in added):
            return None
        ranked: dict[int, int] = {}
        merged = array("H")
        for rank, merge in enumerate(model["merges"]):
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            ranked[vocabulary[left] << 16 | vocabulary[right]] = rank
            merged.append(vocabulary[left + right])
        pairs = sorted(ranked)
        characters = sorted(ord(token) for token in vocabulary if len(token) == 1)
        arrays = (
            array("I", characters),
            array("H", [vocabulary[chr(each)] for each in characters]),
            array("I", pairs),
            array("I", map(ranked.__getitem__, pairs)),
            merged,
            array("H", known_bytes),
        )
        tokens = len({*vocabulary, *(token["content"] for token in added)})
        return cls(tokens, [token["content"] for token in added], arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The table that `to_bytes` wrote. Raises ValueError, TypeError, KeyError or IndexError for anything else."""
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
        """As it is kept for other processes of this machine."""
        parts = [each.tobytes() for each in self._arrays]
        header = {
            "order": sys.byteorder,
            "tokens": self.tokens,
            "added": self._added,
            "bytes": [len(part) for part in parts],
        }
        return b"".join((json.dumps(header).encode(), b"\n", *parts))

    def cut(self, text: str) -> Tokens | None:
        """The token numbers of a text in its order, as the library has them; None for a text that it should cut."""
        if len(text) > LONGEST_TEXT or any(added in text for added in self._added):
            return None
        pieces = _PIECE.findall(BLANK + text.replace(" ", BLANK)) if text else []
        if max(map(len, pieces), default=0) > LONGEST_PIECE:
            return None
        try:
            numbers = [number for piece in pieces for number in self._known.get(piece) or self._piece(piece)]
        except UnicodeEncodeError:  # half of a pair of characters, which is no text to the library either
            return None
        return np.array(numbers, np.uint16)

    def _piece(self, piece: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for character in piece:
            code = ord(character)
            at = bisect_left(self._characters, code)
            if at < len(self._characters) and self._characters[at] == code:
                numbers.append(self._numbers[at])
            else:
                numbers += [self._bytes[byte] for byte in character.encode()]
        found = tuple(self._merge(numbers))
        if len(self._known) >= MOST_PIECES:
            self._known = {}
        self._known[piece] = found
        return found

    def _merge(self, numbers: list[int]) -> list[int]:
        """What becomes of numbers when, again and again, the first pair of the lowest rank is merged."""
        ranks = [self._rank(*pair) for pair in pairwise(numbers)]
        while ranks and (lowest := min(ranks)) != _NEVER:
            at = ranks.index(lowest)
            numbers[at : at + 2] = [self._merged[lowest]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._rank(numbers[at - 1], numbers[at])
            if at < len(ranks):
                ranks[at] = self._rank(numbers[at], numbers[at + 1])
        return numbers

    def _rank(self, left: int, right: int) -> int:
        pair = left << 16 | right
        at = bisect_left(self._pairs, pair)
        return self._ranks[at] if at < len(self._pairs) and self._pairs[at] == pair else _NEVER
