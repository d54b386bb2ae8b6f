"""Lists of ascending row numbers, one per term, as the gaps between them: two bytes a row instead of four."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ESCAPE = 65_535
"""A gap of at least this is written as this number, repeated, and then the rest, which is smaller."""

Rows = NDArray[np.int32]
Gaps = NDArray[np.uint16]
Counts = NDArray[np.integer[Any]]


class RowLists:
    """The rows of every term. Immutable."""

    __slots__ = ("_gaps", "_starts")

    def __init__(self, gaps: Gaps, starts: Sequence[int] | Counts) -> None:
        """Take the gaps of all terms, one term after the other, and where each begins, then the total."""
        self._gaps = gaps
        # elements of a memoryview are plain ints, at a quarter of the cost of numpy scalars
        self._starts = starts.data if isinstance(starts, np.ndarray) else starts

    def of(self, term: int, count: int) -> Rows:
        """The rows of a term, of which there are `count`; a new array."""
        gaps = self._gaps[self._starts[term] : self._starts[term + 1]]
        rows: Rows = np.add.accumulate(gaps, dtype=np.int32)
        return rows if len(rows) == count else rows[gaps != ESCAPE]


def encode(rows: NDArray[np.integer[Any]], counts: Counts) -> tuple[Gaps, NDArray[np.int64]]:
    """The gaps of ascending rows of some terms, and the number of gaps of each term.

    Args:
        rows: Row numbers, ascending within each term, term after term.
        counts: The number of rows of each term.
    """
    # the first gap of a term is counted from row 0
    before = np.append(0, rows[:-1]).astype(np.int64)
    before[(np.cumsum(counts) - counts)[counts > 0]] = 0
    escapes, rest = np.divmod(rows - before[: len(rows)], ESCAPE)
    # a row takes its escapes, then its rest
    ends = np.cumsum(escapes + 1)
    gaps = np.full(int(ends[-1]) if len(ends) else 0, ESCAPE, np.uint16)
    gaps[ends - 1] = rest
    owners = np.repeat(np.arange(len(counts)), counts)
    return gaps, np.bincount(owners, escapes + 1, len(counts)).astype(np.int64)


def smallest_type(largest: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type of at most four bytes that holds this number."""
    return np.dtype(np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32)
