"""Rows that states of the store share: many that stay as they are, perhaps in a file, and behind them later ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE = 64
"""Rows that there is always room for besides a quarter of the later ones."""

Rows = NDArray[Any]


class Room:
    """Numbered rows. Those of the base are never written to nor copied; behind the later ones is spare room.

    States may share a room, but only the one that ends where the room does may write behind its rows.
    """

    __slots__ = ("_base", "_late", "_taken")

    def __init__(self, base: Rows) -> None:
        """Take rows of any shape."""
        self._base = base
        self._late = np.empty((0, *base.shape[1:]), base.dtype)
        self._taken = 0

    @property
    def width(self) -> int:
        """Numbers in a row of several."""
        return int(self._base.shape[1])

    def extended(self, size: int, rows: Rows) -> Room:
        """Room that holds the first `size` rows of this and then these; shared while the places behind are free."""
        begin = size - len(self._base)
        needed, kind = begin + len(rows), np.promote_types(self._late.dtype, rows.dtype)
        room = self
        if self._taken != begin or needed > len(self._late) or self._late.dtype != kind:
            room = Room(self._base)
            room._late = np.empty((needed + needed // 4 + SPARE, *rows.shape[1:]), kind)
            room._late[:begin] = self._late[:begin]
        room._late[begin:needed] = rows
        room._taken = needed
        return room

    def take(self, places: NDArray[np.integer[Any]]) -> Rows:
        """A copy of the rows at these places, in their order."""
        border = len(self._base)
        late = places >= border
        if not late.any():
            return self._base.take(places, axis=0)
        found = np.empty((len(places), *self._late.shape[1:]), self._late.dtype)
        found[~late] = self._base[places[~late]]
        found[late] = self._late[places[late] - border]
        return found

    def stretch(self, first: int, count: int) -> Rows:
        """Consecutive rows, all of the base or all later ones, not copied."""
        border = len(self._base)
        return self._base[first : first + count] if first < border else self._late[first - border :][:count]

    def product(self, size: int, direction: Rows) -> Rows:
        """The product of each of the first `size` rows with a vector."""
        products: Rows = self._base @ direction
        begin = size - len(self._base)
        return np.append(products, self._late[:begin] @ direction) if begin else products
