"""The order in which people read memories: folders follow one another, within a folder keys do."""

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
    """The places of all memories in reading order. Numbers in keys count by value: turn 9 comes before turn 10. The
    order in which memories were stored plays no part."""

    order: Places
    """The places, between two places of no memory."""
    rank: Places
    """Where each place stands in `order`; the place behind the last, that of an unknown id, stands in front."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """The order of the memories with these names (`natural`) at places 0, 1, …"""
        return cls._of(np.array(sorted(range(len(names)), key=names.__getitem__), np.int32))

    @classmethod
    def of_segment(cls, segment: Container) -> Self:
        """The order that stands in a file."""
        return cls(segment.array("reading.order"), segment.array("reading.rank"))

    def spliced(self, drop: Places, at: Places, names: Sequence[str], name: Callable[[int], str]) -> ReadingOrder:
        """The order without the places in `drop`, and then with new memories of these names before the places `at`.

        `name` tells the name of a place that stays. New ones are looked for by halving: of 100,000 names, 17 are read.
        """
        kept = self.order[1:-1]
        kept = kept[~np.isin(kept, drop)]
        known = cache(name)  # the first steps of halving are the same for all
        points = [bisect_left(kept, wanted, key=lambda place: known(int(place))) for wanted in names]
        ranked = sorted(range(len(names)), key=names.__getitem__)
        moved = kept - np.searchsorted(drop, kept)
        moved = moved + np.searchsorted(at, moved, "right")
        arrived = at + np.arange(len(at))
        return self._of(np.insert(moved, np.array(points, np.int64)[ranked], arrived[ranked]).astype(np.int32))

    @classmethod
    def _of(cls, places: NDArray[np.int32]) -> Self:
        rank = np.zeros(len(places) + 1, np.int32)
        rank[places] = np.arange(1, len(places) + 1)
        return cls(np.concatenate([[_NO_PLACE], places, [_NO_PLACE]]).astype(np.int32), rank)


def natural(folder: str, key: str) -> str:
    """A text that sorts as a memory of this folder and key is read."""
    return f"{folder}\0{_by_value(key)}\0{key}"


@lru_cache(maxsize=131_072)  # a change of one memory must not cost the parsing of all keys
def _by_value(key: str) -> str:
    """A text that sorts as the key does, but numbers by value: before each stands how many digits it has."""
    return _DIGITS.sub(lambda number: f"{len(number[0].lstrip('0')):04d}{number[0].lstrip('0')}", key)
