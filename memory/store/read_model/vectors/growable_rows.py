"""Rows shared by states of the store: a base that never changes, perhaps in a file, and later rows after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE = 64
"""Spare rows that are always allocated, in addition to a quarter of the later rows."""

Rows = NDArray[Any]


class GrowableArray:
    """Numbered rows. The base is never written to nor copied; later rows are in an array with spare capacity.

    States may share a room, but only the state whose rows end where the room's do may append.
    """

    __slots__ = ("_base", "_late", "_taken")

    def __init__(self, base: Rows) -> None:
        """`base` may have rows of any shape."""
        self._base = base
        self._late = np.empty((0, *base.shape[1:]), base.dtype)
        self._taken = 0

    @property
    def width(self) -> int:
        """Number of components of a row, for a two-dimensional base."""
        return int(self._base.shape[1])

    def extended(self, size: int, rows: Rows) -> GrowableArray:
        """A room with the first `size` rows of this one, then these; the same room while its next rows are free."""
        begin = size - len(self._base)
        needed, kind = begin + len(rows), np.promote_types(self._late.dtype, rows.dtype)
        room = self
        if self._taken != begin or needed > len(self._late) or self._late.dtype != kind:
            # Another state has appended already, or the array is full or too narrow: copy the later rows with a margin.
            room = GrowableArray(self._base)
            room._late = np.empty((needed + needed // 4 + SPARE, *rows.shape[1:]), kind)
            room._late[:begin] = self._late[:begin]
        # a state never reads past its own rows, so those appended here are invisible to the others
        room._late[begin:needed] = rows
        room._taken = needed
        return room

    def take(self, places: NDArray[np.integer[Any]]) -> Rows:
        """Copies of the rows at these places, in their order."""
        border = len(self._base)
        late = places >= border
        if not late.any():
            return self._base.take(places, axis=0)
        found = np.empty((len(places), *self._late.shape[1:]), self._late.dtype)
        found[~late] = self._base[places[~late]]
        found[late] = self._late[places[late] - border]
        return found

    def stretch(self, first: int, count: int) -> Rows:
        """Consecutive rows, all in the base or all later ones; not copied."""
        border = len(self._base)
        return self._base[first : first + count] if first < border else self._late[first - border :][:count]

    def blocks(self, size: int, rows: int) -> Iterator[tuple[int, Rows]]:
        """The first `size` rows, at most so many at a time, each block with the number of its first row."""
        border = min(size, len(self._base))
        for begin, end in ((0, border), (border, size)):
            for first in range(begin, end, rows):
                yield first, self.stretch(first, min(rows, end - first))

    def product(self, size: int, direction: Rows) -> Rows:
        """The product of each of the first `size` rows with a vector: (size,)."""
        products: Rows = self._base @ direction
        begin = size - len(self._base)
        return np.append(products, self._late[:begin] @ direction) if begin else products
