"""Terms and their numbers, found by halving an ordered table of bytes instead of in a dictionary made at the start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class TermTable:
    """Distinct terms, numbered 0, 1, … by ascending bytes. Implements `Terms` over two arrays where they lie.

    `text` holds the UTF-8 bytes of all terms one after the other, and `ends` where each ends.
    """

    __slots__ = ("_ends", "_text")

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        """Take the arrays as they are; nothing is copied."""
        # Elements of these views are plain numbers and cost a quarter of what numpy's cost.
        self._text = text.data
        self._ends = ends.data

    def get(self, term: str) -> int | None:
        """The number of a term, None for one that is not there."""
        wanted = term.encode("utf-8", "surrogatepass")
        at = bisect_left(range(len(self._ends)), wanted, key=self._bytes)
        return at if at < len(self._ends) and self._bytes(at) == wanted else None

    def name(self, number: int) -> str:
        """The term of a number."""
        return str(self._bytes(number), "utf-8")

    def __iter__(self) -> Iterator[str]:
        """All terms by their numbers."""
        text, begin = bytes(self._text), 0
        for end in self._ends.tolist():
            yield text[begin:end].decode()
            begin = end

    def __len__(self) -> int:
        """How many terms there are."""
        return len(self._ends)

    def _bytes(self, number: int) -> bytes:
        return bytes(self._text[self._ends[number - 1] if number else 0 : self._ends[number]])
