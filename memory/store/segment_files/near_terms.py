"""Which of many terms may be a few edits away from another, told by their lengths and by the letters that they have.

Whoever looks for a misspelt word would have to make a string of every term of the store and compare it. An edit puts a
letter in, takes one out, replaces one or exchanges two: the length changes by one at most, and of a set of letters one
goes and one comes. So most terms are ruled out by two numbers of each, all at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 255
"""Characters. Longer terms count as of this length."""
TOGETHER = 65_536
"""So many terms are looked at in one go, so that few bytes are taken for each at a time."""


def _bit_of_byte() -> NDArray[np.uint32]:
    """A bit for every byte of UTF-8: 26 for letters, 3 for digits, one for other signs of ASCII, one for all others, so
    that a character has one, of however many bytes."""
    bits = np.full(256, 1 << 29, np.uint32)
    bits[128:] = 1 << 30
    for place in range(26):
        bits[[ord("a") + place, ord("A") + place]] = 1 << place
    for digit in range(10):
        bits[ord("0") + digit] = 1 << 26 + digit * 3 // 10
    return bits


_BIT_OF_BYTE = _bit_of_byte()
_CONTINUES = (np.arange(256) & 0xC0) == 0x80
"""The bytes of UTF-8 that begin no character."""


class NearTerms:
    """The lengths and letters of distinct terms. Takes 5 bytes for each."""

    __slots__ = ("_lengths", "_letters")

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.integer[Any]]) -> None:
        """Take the UTF-8 bytes of all terms one after the other, and where each ends."""
        self._letters = np.zeros(len(ends), np.uint32)
        self._lengths = np.zeros(len(ends), np.uint8)
        for first in range(0, len(ends), TOGETHER):
            part = slice(first, first + TOGETHER)
            begin = int(ends[first - 1]) if first else 0
            after = ends[part] - begin
            before = np.concatenate([[0], after[:-1]])
            said = text[begin : begin + int(after[-1])]
            size, there = after - before, np.flatnonzero(after > before)
            if len(there):
                of_part = np.zeros(len(after), np.uint32)
                of_part[there] = np.bitwise_or.reduceat(_BIT_OF_BYTE[said], before[there])
                self._letters[part] = of_part
                continues = _CONTINUES[said]
                if continues.any():
                    size[there] -= np.add.reduceat(continues, before[there], dtype=np.int64)
            self._lengths[part] = np.minimum(size, LONGEST)

    def places(self, term: str, edits: int) -> NDArray[np.intp]:
        """The numbers of all terms that are at most so many edits away, and of some that are not."""
        own = NearTerms.of([term])
        length = int(own._lengths[0])
        low, high = max(length - edits, 0), min(length + edits, LONGEST)
        near = np.flatnonzero((self._lengths >= low) & (self._lengths <= high))
        changed = np.bitwise_count(self._letters[near] ^ own._letters[0])
        found: NDArray[np.intp] = near[changed <= 2 * edits]
        return found

    @classmethod
    def of(cls, terms: list[str]) -> NearTerms:
        """The same of a few terms in memory."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(each) for each in encoded], dtype=int))
