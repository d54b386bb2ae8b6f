"""The position of each term in the texts of an inverted index, for finding phrases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Postings

Rows = NDArray[np.int32]
Places = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]


class WordOrder:
    """The positions of every term in the rows that contain it, immutable.

    Positions count from the beginning of the row, so that one or two bytes hold each; the rows come from the postings
    of the term. For comparisons the rows are laid out one after the other, with a gap of one place between them, so
    that the last word of a row and the first of the next are not adjacent.
    """

    __slots__ = ("_first", "_places", "_starts")

    def __init__(self, places: Integers, starts: Sequence[int] | Integers, first: Places) -> None:
        """Take the stored arrays of a word order.

        Args:
            places: Positions of all tokens, term after term, then row after row, ascending.
            starts: Where each term's positions begin, then the total.
            first: Where each row begins when the rows are laid out.
        """
        self._places = places
        self._starts = starts
        self._first = first

    def adjacent(self, before: tuple[int, Postings], after: tuple[int, Postings]) -> Rows:
        """Rows in which the second term directly follows the first, ascending; each with its number and postings."""
        left, right = self._of(*before), self._of(*after)
        # The shorter list is searched for in the longer one.
        places = left[_among(left + 1, right)] if len(left) < len(right) else right[_among(right - 1, left)]
        if not len(places):  # most pairs of words are adjacent nowhere
            return np.empty(0, np.int32)
        # The row of a place is the last one that begins at or before it.
        rows = self._first.searchsorted(places, side="right") - 1
        return distinct(rows).astype(np.int32)

    def _of(self, code: int, postings: Postings) -> Places:
        """The places of a term, ascending."""
        first = np.repeat(self._first[postings.rows], postings.frequency.astype(np.int64))
        return first + self._places[self._starts[code] : self._starts[code + 1]]


def _among(wanted: Places, places: Places) -> NDArray[np.bool_]:
    """Which of the wanted places are in `places`; both are ascending."""
    if not len(places):
        return np.zeros(len(wanted), np.bool_)
    # a place beyond the end is compared with the last one
    there: NDArray[np.bool_] = places.take(places.searchsorted(wanted), mode="clip") == wanted
    return there
