"""The position of each term in the texts of an inverted index, for finding phrases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct

Codes = NDArray[np.int32]
"""Terms by their number in the index, one per token."""
Rows = NDArray[np.int32]
Places = NDArray[np.int64]


class WordOrder:
    """The positions of every term in all rows, immutable.

    Rows are laid out one after the other with a gap of one position between them, so that the last word of a row and
    the first of the next are not adjacent. Takes 4 bytes per token.
    """

    __slots__ = ("_first", "_places", "_starts", "sizes")

    def __init__(self, codes: Codes, sizes: NDArray[np.int64], terms: int) -> None:
        """Take the terms of all rows in text order, the number of tokens of each row, and the number of terms."""
        self.sizes = sizes
        """The number of tokens of each row."""
        rows = np.arange(len(sizes))
        # first[i]: position of the first token of row i, with one unused position between rows
        self._first: Places = np.cumsum(sizes) - sizes + rows
        # Stable: the positions of each term ascend and can be searched by bisection.
        order = np.argsort(codes, kind="stable")
        # (tokens,): the row of each token, which is the number of gaps before it
        gaps = np.repeat(rows, sizes)
        self._places: NDArray[np.int32] = (order + gaps[order]).astype(np.int32)
        self._starts: Places = np.append(0, np.cumsum(np.bincount(codes, minlength=terms)))

    @classmethod
    def of_places(cls, places: NDArray[np.int32], starts: Places, sizes: NDArray[np.int64], first: Places) -> WordOrder:
        """The word order from its stored arrays.

        Args:
            places: Positions of all tokens, ascending within each term, term after term.
            starts: Where each term's positions begin, then the total.
            sizes: Number of tokens of each row.
            first: Position of the first token of each row.
        """
        order = cls.__new__(cls)
        order.sizes = sizes
        order._first, order._places, order._starts = first, places, starts
        return order

    def adjacent(self, first: int, second: int) -> Rows:
        """Rows in which the second term directly follows the first, ascending."""
        before, after = self._of(first), self._of(second)
        # The shorter list is searched for in the longer one.
        places = before[_among(before + 1, after)] if len(before) < len(after) else after[_among(after - 1, before)]
        if not len(places):  # most pairs of words are adjacent nowhere
            return np.empty(0, np.int32)
        # The row of a position is the last one that begins at or before it.
        rows = self._first.searchsorted(places, side="right") - 1
        return distinct(rows).astype(np.int32)

    def codes(self) -> Codes:
        """The terms of all rows in text order, as the constructor took them."""
        terms = np.repeat(np.arange(len(self._starts) - 1, dtype=np.int32), np.diff(self._starts))
        return terms[np.argsort(self._places)]

    def _of(self, code: int) -> NDArray[np.int32]:
        return self._places[self._starts[code] : self._starts[code + 1]]


def _among(wanted: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the wanted positions are in `places`; both are ascending."""
    # a position beyond the end is compared with the last one
    there: NDArray[np.bool_] = places.take(places.searchsorted(wanted), mode="clip") == wanted
    return there
