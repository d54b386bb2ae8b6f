"""Rules out most terms as spelling neighbours of another one, by length and set of letters.

Without this, correcting a misspelt word would decode and compare every term of the store. An edit inserts, deletes,
replaces or transposes letters: the length changes by one at most, and the set of letters loses and gains one at most.
Two numbers per term therefore rule out most terms, vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 255
"""Characters. Longer terms are treated as having this length."""
TOGETHER = 65_536
"""Terms processed at once, which bounds the memory for temporary arrays."""


def _bit_of_byte() -> NDArray[np.uint32]:
    """A bit for every UTF-8 byte: 26 for letters, 3 for digits, one for other ASCII characters, one for all others, so
    that every character has one bit regardless of its number of bytes."""
    bits = np.full(256, 1 << 29, np.uint32)
    bits[128:] = 1 << 30
    # both cases of a letter share a bit; digits share three: 0–3, 4–6 and 7–9
    for place in range(26):
        bits[[ord("a") + place, ord("A") + place]] = 1 << place
    for digit in range(10):
        bits[ord("0") + digit] = 1 << 26 + digit * 3 // 10
    return bits


_BIT_OF_BYTE = _bit_of_byte()
_CONTINUES = (np.arange(256) & 0xC0) == 0x80
"""The UTF-8 continuation bytes, which begin no character."""


class NearTerms:
    """The lengths and letters of distinct terms. Takes 5 bytes per term."""

    __slots__ = ("_lengths", "_letters")

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.integer[Any]]) -> None:
        """Take the UTF-8 bytes of all terms, concatenated, and the end of each."""
        # _letters: (terms,) uint32, bits of `_BIT_OF_BYTE`; _lengths: (terms,) uint8, in characters
        self._letters = np.zeros(len(ends), np.uint32)
        self._lengths = np.zeros(len(ends), np.uint8)
        for first in range(0, len(ends), TOGETHER):
            part = slice(first, first + TOGETHER)
            begin = int(ends[first - 1]) if first else 0
            # before, after: (part,) start and end of each term within `said`
            after = ends[part] - begin
            before = np.concatenate([[0], after[:-1]])
            said = text[begin : begin + int(after[-1])]
            # `reduceat` cannot express empty slices: empty terms keep zeros.
            size, there = after - before, np.flatnonzero(after > before)
            if len(there):
                of_part = np.zeros(len(after), np.uint32)
                of_part[there] = np.bitwise_or.reduceat(_BIT_OF_BYTE[said], before[there])
                self._letters[part] = of_part
                continues = _CONTINUES[said]
                if continues.any():
                    size[there] -= np.add.reduceat(continues, before[there], dtype=np.int64)
            # size: characters, that is bytes without continuation bytes
            self._lengths[part] = np.minimum(size, LONGEST)

    def places(self, term: str, edits: int) -> NDArray[np.intp]:
        """The numbers of a superset of the terms within `edits` edits."""
        own = NearTerms.of([term])
        length = int(own._lengths[0])
        low, high = max(length - edits, 0), min(length + edits, LONGEST)
        near = np.flatnonzero((self._lengths >= low) & (self._lengths <= high))
        # One edit flips at most two bits of the letter set: that of the letter lost and that of the letter gained.
        changed = np.bitwise_count(self._letters[near] ^ own._letters[0])
        found: NDArray[np.intp] = near[changed <= 2 * edits]
        return found

    @classmethod
    def of(cls, terms: list[str]) -> NearTerms:
        """The lengths and letters of a few terms given as strings."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(each) for each in encoded], dtype=int))
