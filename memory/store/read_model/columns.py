"""The facts about all memories as numpy columns, and which memory each chunk belongs to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.facts import ATTRIBUTES, LABELS, NUMBERS
from speckit_memory.memory.store.read_model.scope import Mask, MemoryScope
from speckit_memory.memory.store.records import EARLIEST, LATEST, UNKNOWN_TIME, Tier
from speckit_memory.pipeline.clock import opening
from speckit_memory.pipeline.ports import Column, Filter, Ids
from speckit_memory.pipeline.ports.immutable import own

TEMPORARY_LIFE = 7 * 86_400.0
"""Seconds that a temporary memory lives which has no date of expiry of its own (feature F7)."""

SHORT = 600
"""Characters below which a memory is a short note, to be read together with those beside it (measured)."""

UNKNOWN = -1
"""The memory of an id that the store does not hold."""

Labels = NDArray[np.object_]
Places = NDArray[np.int32]

_DIGITS = re.compile(r"[0-9]+")

_ENDS = len(NUMBERS)
"""Row behind the numbers: the time after which a memory is not admitted any more."""


class Columns:
    """Facts about memories. Implements `pipeline.ports.Attributes`. Immutable.

    Every table is ordered by memory id and ends in one column more, which holds the answer for an unknown id: its place
    is -1. `_places` holds the place of every id ever drawn up to the largest one stored; its first and last element
    are those of ids below and above.
    """

    __slots__ = (
        "_chunks", "_coded", "_ids", "_labels", "_numbers", "_of_tier", "_parents", "_places", "_reading",
    )  # fmt: skip
    _coded: dict[str, tuple[tuple[str, ...], NDArray[np.int64]]]
    _of_tier: dict[str, Ids]
    _places: Places
    _reading: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    def __init__(self, rows: Sequence[tuple[Any, ...]], chunks: Ids, parents: Ids) -> None:
        """Take rows of `facts.ATTRIBUTES` by ascending id, and chunk ids with the memory of each."""
        ids, labels, numbers = _transposed(rows)
        self._take_facts(
            np.append(ids, UNKNOWN),
            np.hstack([labels, np.full((len(LABELS), 1), "", np.object_)]),
            np.hstack([numbers, np.full((_ENDS + 1, 1), np.nan)]),
        )
        self._take_chunks(chunks, parents)

    def replaced(self, gone: Ids, rows: Sequence[tuple[Any, ...]], chunks: Ids, parents: Ids) -> Columns:
        """The columns without the memories in `gone`, and with these rows and chunks in place of any older ones."""
        ids, labels, numbers = _transposed(rows)
        outdated = np.append(gone, ids)
        if not len(gone) and np.isin(ids, self._known).all():
            twin = self.updated(rows)
        else:
            drop = np.flatnonzero(np.isin(self._known, outdated))
            kept = np.delete(self._ids, drop)
            at = np.searchsorted(kept[:-1], ids)
            twin = Columns.__new__(Columns)
            twin._take_facts(
                np.insert(kept, at, ids),
                _spliced(self._labels, drop, at, labels),
                _spliced(self._numbers, drop, at, numbers),
            )
        current = ~np.isin(self._parents, outdated)
        twin._take_chunks(np.append(self._chunks[current], chunks), np.append(self._parents[current], parents))
        return twin

    def updated(self, rows: Sequence[tuple[Any, ...]]) -> Columns:
        """The columns with these facts about memories that they hold already; chunks stay as they are."""
        ids, labels, numbers = _transposed(rows)
        at = np.searchsorted(self._known, ids)
        twin = Columns.__new__(Columns)
        for name in Columns.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._numbers = self._numbers.copy()
        twin._numbers[:, at] = numbers
        if not np.array_equal(self._labels[:, at], labels):
            twin._labels = self._labels.copy()
            twin._labels[:, at] = labels
            twin._forget()
        return twin

    @property
    def ids(self) -> Ids:
        """All memories, ascending."""
        return self._ids[:-1].copy()

    @property
    def chunks(self) -> Ids:
        """All chunks, ascending."""
        return self._chunks.copy()

    def chunks_of(self, memories: Ids) -> Ids:
        """All chunks of these memories, ascending."""
        return self._chunks[np.isin(self._parents, memories)]

    @property
    def count(self) -> int:
        """How many memories the store holds."""
        return len(self._ids) - 1

    def places(self, ids: Ids) -> Places:
        """Place of each id in `self.ids`, a chunk standing for its memory; -1 where the id is unknown."""
        places: Places = self._places.take(ids, mode="clip")
        return places

    def parents(self, ids: Ids) -> Ids:
        """The memory of each id; a memory is its own parent; `UNKNOWN` for an unknown id."""
        parents: Ids = self._ids[self.places(ids)]
        return parents

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The memories just before and just after each, in the natural order of keys; `UNKNOWN` for none.

        Only short notes of one folder have neighbours, such as the turns of a conversation or the entries of a journal.
        """
        if self._reading is None:
            with opening():
                self._reading = _reading(self._labels)
        order, rank = self._reading
        at = self.places(ids)
        return self._neighbour(at, order[rank[at] - 1]), self._neighbour(at, order[rank[at] + 1])

    def number(self, name: str, ids: Ids) -> Column:
        """A numeric fact (one of `NUMBERS`) about each id, NaN where it or the id is unknown.

        Times are epoch seconds, `stability` is in days. Raises ValueError for another name.
        """
        facts: Column = self._numbers[_place(name, NUMBERS)][self.places(ids)]
        return facts

    def label(self, name: str, ids: Ids) -> Labels:
        """A textual fact (one of `LABELS`) about each id, "" for an unknown id. Raises ValueError for another name."""
        facts: Labels = self._labels[_place(name, LABELS)][self.places(ids)]
        return facts

    def scope(self, wanted: Filter, now: float) -> MemoryScope:
        """The memories that the filter admits at the time `now` (epoch seconds).

        Never a deprecated one, nor one that expired before `now` (features C6, F7).
        """
        admitted: Mask = self._numbers[_ENDS, :-1] >= now
        if wanted.folder:
            admitted &= self._where("folder", _within((wanted.folder,)))
        if wanted.folders:
            admitted &= self._where("folder", _within(wanted.folders))
        if wanted.tier:
            admitted &= self._where("tier", lambda value: value == wanted.tier)
        if wanted.context_type:
            admitted &= self._where("context_type", lambda value: value == wanted.context_type)
        if wanted.memories is not None:
            admitted &= np.isin(self._known, np.array(wanted.memories, np.int64))
        return MemoryScope(self, admitted)

    def of_tier(self, tier: str) -> Ids:
        """All memories of a tier, ascending."""
        tier = own(tier)
        found = self._of_tier.get(tier)
        if found is None:
            found = self._of_tier[tier] = self._known[self._where("tier", lambda value: value == tier)]
        return found.copy()

    def in_folder(self, folder: str) -> Ids:
        """All memories whose folder is exactly this one, ascending."""
        folder = own(folder)
        return self._known[self._where("folder", lambda value: value == folder)]

    @property
    def _known(self) -> Ids:
        """All memories, ascending, not copied."""
        return self._ids[:-1]

    def _neighbour(self, at: Places, other: NDArray[np.int64]) -> Ids:
        """The memory at the place `other` where it and the one at the place `at` are neighbours, else `UNKNOWN`."""
        folder = self._labels[_place("folder", LABELS)]
        short = self._numbers[_place("characters", NUMBERS)] < SHORT
        # The place behind the last is that of an unknown id, which has neither a folder nor a length.
        linked = (folder[at] == folder[other]) & (folder[at] != "") & short[at] & short[other]
        return np.where(linked, self._ids[other], UNKNOWN)

    def _where(self, name: str, holds: Callable[[str], bool]) -> Mask:
        """Which memories have a label that passes the test. The test runs once per distinct label."""
        coded = self._coded.get(name)
        if coded is None:
            numbering: defaultdict[str, int] = defaultdict(count().__next__)
            column = self._labels[_place(name, LABELS), :-1].tolist()
            codes = np.fromiter(map(numbering.__getitem__, column), np.int64, len(column))
            coded = self._coded[name] = (tuple(numbering), codes)
        values, codes = coded
        return np.array([holds(value) for value in values], np.bool_)[codes]

    def _take_facts(self, ids: Ids, labels: Labels, numbers: Column) -> None:
        self._ids = ids
        self._labels = labels
        self._numbers = numbers
        self._forget()

    def _forget(self) -> None:
        """Gives up what was derived from labels."""
        self._coded = {}
        self._of_tier = {}
        self._reading = None

    def _take_chunks(self, chunks: Ids, parents: Ids) -> None:
        order = np.argsort(chunks, kind="stable")
        self._chunks, self._parents = chunks[order], parents[order]
        largest = max(self._known.max(initial=0), chunks.max(initial=0))
        self._places = np.full(largest + 2, -1, np.int32)
        self._places[self._chunks] = np.searchsorted(self._known, self._parents)
        self._places[self._known] = np.arange(self.count)


def _within(folders: Sequence[str]) -> Callable[[str], bool]:
    """The test for a folder being one of these or inside one; the empty name is that of the root."""
    names = [folder.rstrip("/") for folder in folders]
    return lambda value: any(not name or value == name or value.startswith(f"{name}/") for name in names)


def _spliced(table: NDArray[Any], drop: NDArray[np.intp], at: NDArray[np.intp], columns: NDArray[Any]) -> NDArray[Any]:
    """The table without the columns in `drop`, and then with new ones before the places `at`."""
    kept = np.delete(table, drop, axis=1) if len(drop) else table
    return np.insert(kept, at, columns, axis=1) if len(at) else kept


def _place(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise ValueError(f"no column is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


@lru_cache(maxsize=131_072)  # a change of one memory must not cost the parsing of all keys
def _natural(key: str) -> str:
    """A text that sorts as the key does, but numbers by value: before each stands how many digits it has."""
    return _DIGITS.sub(lambda number: f"{len(number[0].lstrip('0')):04d}{number[0].lstrip('0')}", key)


def _reading(labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of all memories in reading order, between two places of no memory; and where each place stands there.

    Folders follow one another, within a folder keys do, numbers in them by value: turn 9 before turn 10. The order in
    which memories were stored plays no part.
    """
    folders, keys = (labels[_place(name, LABELS), :-1].tolist() for name in ("folder", "key"))
    natural = [f"{folder}\0{_natural(key)}\0{key}" for folder, key in zip(folders, keys, strict=True)]
    order = np.array([-1, *sorted(range(len(natural)), key=natural.__getitem__), -1], np.int64)
    rank = np.zeros(len(natural) + 1, np.int64)
    rank[order[1:-1]] = np.arange(1, len(natural) + 1)
    return order, rank


def _transposed(rows: Sequence[tuple[Any, ...]]) -> tuple[Ids, Labels, Column]:
    """Ids, labels (one row each of `LABELS`) and numbers (one row each of `NUMBERS`, and the ends)."""
    table = dict(zip(ATTRIBUTES, zip(*rows, strict=True) if rows else [()] * len(ATTRIBUTES), strict=True))
    labels = np.empty((len(LABELS), len(rows)), np.object_)
    for place, name in enumerate(LABELS):
        labels[place] = table[name]
    numbers = np.empty((_ENDS + 1, len(rows)))
    for place, name in enumerate(NUMBERS):
        numbers[place] = np.array(table[name], np.float64)  # None becomes NaN
    for name in ("created_at", "updated_at"):
        known = numbers[_place(name, NUMBERS)]
        known[(known == UNKNOWN_TIME) | (known < EARLIEST) | (known > LATEST)] = np.nan
    tier = labels[LABELS.index("tier")]
    ends = numbers[_place("expires_at", NUMBERS)].copy()
    unlimited = np.isnan(ends)
    ends[unlimited] = np.inf
    temporary = unlimited & (tier == Tier.TEMPORARY)
    ends[temporary] = numbers[_place("created_at", NUMBERS)][temporary] + TEMPORARY_LIFE
    ends[np.isnan(ends)] = np.inf  # nobody can tell when a temporary memory without a date is over
    ends[tier == Tier.DEPRECATED] = -np.inf
    numbers[_ENDS] = ends
    return np.array(table["id"], np.int64), labels, numbers
