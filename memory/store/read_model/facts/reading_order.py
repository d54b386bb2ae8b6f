"""The order in which people read memories: by folder, then by key."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Container

_DIGITS = re.compile(r"[0-9]+")
_NO_PLACE = -1

Places = NDArray[np.integer[Any]]


class ReadingOrder(NamedTuple):
    """The places of all memories in reading order. Numbers in keys sort by value: turn 9 comes before turn 10. The
    order of storage is irrelevant."""

    order: Places
    """All places in reading order, with -1 before and after them."""
    rank: Places
    """The index of each place in `order`; the extra last place, that of an unknown id, has index 0."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """The order of memories with these names (from `natural`) at places 0, 1, …"""
        return cls._of(np.array(sorted(range(len(names)), key=names.__getitem__), np.int32))

    @classmethod
    def of_segment(cls, segment: Container) -> Self:
        """The order stored in a segment file."""
        return cls(segment.array("reading.order"), segment.array("reading.rank"))

    def spliced(self, drop: Places, at: Places, names: Sequence[str], name: Callable[[int], str]) -> ReadingOrder:
        """A copy without some places, then with new memories inserted.

        New names are placed by binary search: among 100,000 names, 17 are read.

        Args:
            drop: Places to remove, ascending.
            at: Places, after the removal, before which new memories are inserted.
            names: Sort keys of the new memories.
            name: Returns the sort key of a place that stays.
        """
        kept = self.order[1:-1]
        kept = kept[~np.isin(kept, drop)]
        known = cache(name)  # the first steps of every binary search are the same
        points = [bisect_left(kept, wanted, key=lambda place: known(int(place))) for wanted in names]
        ranked = sorted(range(len(names)), key=names.__getitem__)
        # Renumber: down by the removed places before each, then up by the new ones inserted up to it.
        moved = kept - np.searchsorted(drop, kept)
        moved = moved + np.searchsorted(at, moved, "right")
        # the i-th new memory moves up by the i that are inserted before it
        arrived = at + np.arange(len(at))
        return self._of(np.insert(moved, np.array(points, np.int64)[ranked], arrived[ranked]).astype(np.int32))

    @classmethod
    def _of(cls, places: NDArray[np.int32]) -> Self:
        # the last element stays 0: an unknown id, at place -1, is before the first memory
        rank = np.zeros(len(places) + 1, np.int32)
        rank[places] = np.arange(1, len(places) + 1)
        return cls(np.concatenate([[_NO_PLACE], places, [_NO_PLACE]]).astype(np.int32), rank)


def natural(folder: str, key: str) -> str:
    """The sort key of a memory of this folder and key."""
    # \0 sorts before every character of a name: a folder comes before those whose names it begins
    return f"{folder}\0{_by_value(key)}\0{key}"


@lru_cache(maxsize=131_072)  # a change of one memory must not cost the parsing of all keys
def _by_value(key: str) -> str:
    """A sort key with numbers ordered by value: the number of its digits goes before each."""
    return _DIGITS.sub(lambda number: f"{len(number[0].lstrip('0')):04d}{number[0].lstrip('0')}", key)
