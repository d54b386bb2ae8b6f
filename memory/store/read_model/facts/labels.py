"""A textual fact about all memories: the distinct values, and the number of its value for each memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.term_table import TermTable

NONE = -1
"""The number of the empty value of an unknown id."""
_FEW = 4096
"""Up to this many values, all are decoded to strings once and kept."""

Texts = NDArray[np.object_]
Places = NDArray[np.integer[Any]]


class Labels:
    """The values of one fact by place; an extra last place, that of unknown ids, holds "". Immutable."""

    __slots__ = ("_added", "_codes", "_late", "_names", "_of_table", "_table")

    def __init__(self, table: TermTable | None, codes: NDArray[np.int32], added: dict[str, int] | None = None) -> None:
        """`codes` holds the number of each value, -1 at the last place; `added` numbers values not in `table`."""
        self._table = table
        self._of_table = 0 if table is None else len(table)
        # (memories + 1,) int32, the number of the value at each place
        self._codes = codes
        self._added = added or {}
        self._late = tuple(self._added)
        self._names: Texts | None = None

    @classmethod
    def of(cls, values: Iterable[str]) -> Labels:
        """The labels of memories at places 0, 1, …"""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        codes = [numbering[value] for value in values]
        return cls(None, np.array([*codes, NONE], np.int32), dict(numbering))

    @classmethod
    def of_segment(cls, segment: Container, name: str) -> Labels:
        """Labels backed by the arrays of this name in a segment file."""
        table = TermTable(segment, name)
        return cls(table, segment.array(f"{name}.codes"))

    def at(self, places: Places) -> Texts:
        """The value at each place."""
        codes = self._codes[places]
        if self._table is None or self._of_table <= _FEW:
            # NONE is -1, so it reads the last value, the empty one
            named: Texts = self._all()[codes]
            return named
        found = np.empty(len(codes), np.object_)
        numbers = codes.tolist()
        # One batch decode from the file where possible, else value by value.
        plain = not self._late and NONE not in numbers
        found[:] = self._table.names(numbers) if plain else [self._name(number) for number in numbers]
        return found

    def equal(self, first: Places, second: Places) -> NDArray[np.bool_]:
        """Where the values at two arrays of places are equal and not empty."""
        one = self._codes[first]
        empty = self._number("")
        # NONE equals nothing, not even itself: two unknown ids have no value in common
        same: NDArray[np.bool_] = (one == self._codes[second]) & (one != NONE)
        return same if empty is None else same & (one != empty)

    def where(self, holds: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Which memories have a value that passes the test, which runs once per distinct value."""
        # A table over values (distinct,), then a gather by the codes (memories,).
        return np.array([holds(value) for value in self._all()[:-1]], np.bool_)[self._codes[:-1]]

    def changed(self, places: Places, values: Sequence[str]) -> Labels:
        """A copy with these values at these places; the same object when nothing changes."""
        if self.at(places).tolist() == list(values):
            return self
        codes = self._codes.copy()
        added = self._added.copy()
        codes[places] = self._numbered(values, added)
        return Labels(self._table, codes, added)

    def spliced(self, drop: Places, at: Places, values: Sequence[str]) -> Labels:
        """A copy without the places in `drop`, then with these values inserted before the places `at`."""
        kept = np.delete(self._codes, drop) if len(drop) else self._codes
        added = self._added.copy()
        numbers = self._numbered(values, added)
        return Labels(self._table, np.insert(kept, at, numbers) if len(at) else kept, added)

    def _number(self, value: str) -> int | None:
        found = self._added.get(value)
        return self._table.get(value) if found is None and self._table is not None else found

    def _numbered(self, values: Sequence[str], added: dict[str, int]) -> NDArray[np.int32]:
        numbers = []
        for value in values:
            number = added.get(value)
            if number is None and self._table is not None:
                number = self._table.get(value)
            if number is None:
                # numbers continue after those of the table, which stay the same
                number = added[value] = self._of_table + len(added)
            numbers.append(number)
        return np.array(numbers, np.int32)

    def _name(self, number: int) -> str:
        if number == NONE:
            return ""
        late = number - self._of_table
        return self._table.name(number) if late < 0 and self._table is not None else self._late[late]

    def _all(self) -> Texts:
        """All values by number, then the empty value."""
        if self._names is None:
            names = [*chain(self._table or (), self._added), ""]
            table = np.empty(len(names), np.object_)
            table[:] = names
            self._names = table
        return self._names
