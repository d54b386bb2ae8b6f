"""The facts about all memories as numpy columns, and which memory each chunk belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.schema.facts import ATTRIBUTES, LABELS, NUMBERS
from speckit_memory.memory.store.read_model.facts.labels import Labels, Texts
from speckit_memory.memory.store.read_model.facts.reading_order import ReadingOrder, natural
from speckit_memory.memory.store.read_model.facts.scope import Mask, MemoryScope
from speckit_memory.memory.store.records import EARLIEST, LATEST, UNKNOWN_TIME, Tier
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.pipeline.ports import Column, Filter, Ids, Scope
from speckit_memory.pipeline.ports.immutable import own
from speckit_memory.pipeline.process.clock import opening

TEMPORARY_LIFE = 7 * 86_400.0
"""Seconds that a temporary memory lives which has no date of expiry of its own (feature F7)."""

SHORT = 600
"""Characters below which a memory is a short note, to be read together with those beside it (measured)."""

UNKNOWN = -1
"""The memory of an id that the store does not hold."""

Places = NDArray[np.int32]

_ENDS = len(NUMBERS)
"""Stands behind the numbers: the time after which a memory is not admitted any more."""


class Columns:
    """Facts about memories. Implements `pipeline.ports.Attributes`. Immutable.

    Every column is ordered by memory id and has one place more, which holds the answer for an unknown id: that is the
    place -1. `_places` holds the place of every id ever drawn up to the largest one stored; its first and last element
    are those of ids below and above. No array is ever written to, so that states share them, and processes a file.
    """

    __slots__ = ("_chunks", "_ids", "_labels", "_numbers", "_of_tier", "_parents", "_places", "_reading")
    _ids: Ids
    _labels: tuple[Labels, ...]
    _numbers: tuple[Column, ...]
    _chunks: Ids
    _parents: Ids
    _places: Places
    _of_tier: dict[str, Ids]
    _reading: ReadingOrder | None

    def __init__(self, rows: Sequence[tuple[Any, ...]], chunks: Ids, parents: Ids) -> None:
        """Take rows of `facts.ATTRIBUTES` by ascending id, and chunk ids with the memory of each."""
        ids, labels, numbers = transposed(rows)
        self._ids = np.append(ids, UNKNOWN)
        self._labels = tuple(map(Labels.of, labels))
        self._numbers = tuple(np.append(column, np.nan) for column in numbers)
        self._of_tier, self._reading = {}, None
        self._take_chunks(chunks, parents)

    @classmethod
    def of_segment(cls, segment: Container) -> Columns:
        """The columns that stand in a file, where they lie."""
        columns = cls.__new__(cls)
        columns._ids = segment.array("memories.ids")
        columns._labels = tuple(Labels.of_segment(segment, f"label.{name}") for name in LABELS)
        columns._numbers = tuple(segment.array(f"number.{name}") for name in (*NUMBERS, "ends"))
        columns._chunks, columns._parents = segment.array("chunks.ids"), segment.array("chunks.parents")
        columns._places = segment.array("places")
        columns._of_tier, columns._reading = {}, ReadingOrder.of_segment(segment)
        return columns

    def replaced(self, gone: Ids, rows: Sequence[tuple[Any, ...]], chunks: Ids, parents: Ids) -> Columns:
        """The columns without the memories in `gone`, and with these rows and chunks in place of any older ones."""
        ids, labels, numbers = transposed(rows)
        outdated = np.append(gone, ids)
        if not len(gone) and np.isin(ids, self._known).all():
            twin = self.updated(rows)
        else:
            drop = np.flatnonzero(np.isin(self._known, outdated))
            kept = np.delete(self._ids, drop)
            at = np.searchsorted(kept[:-1], ids)
            twin = Columns.__new__(Columns)
            twin._ids = np.insert(kept, at, ids)
            twin._labels = tuple(old.spliced(drop, at, new) for old, new in zip(self._labels, labels, strict=True))
            twin._numbers = tuple(
                np.insert(np.delete(old, drop), at, new) for old, new in zip(self._numbers, numbers, strict=True)
            )
            twin._of_tier, twin._reading = {}, None
            if self._reading is not None:
                names = list(map(natural, labels[LABELS.index("folder")], labels[LABELS.index("key")]))
                twin._reading = self._reading.spliced(drop, at, names, self._name)
        current = ~np.isin(self._parents, outdated)
        twin._take_chunks(np.append(self._chunks[current], chunks), np.append(self._parents[current], parents))
        return twin

    def updated(self, rows: Sequence[tuple[Any, ...]]) -> Columns:
        """The columns with these facts about memories that they hold already; chunks stay as they are."""
        ids, labels, numbers = transposed(rows)
        at = np.searchsorted(self._known, ids)
        twin = Columns.__new__(Columns)
        for name in Columns.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._numbers = tuple(_written(old, at, new) for old, new in zip(self._numbers, numbers, strict=True))
        twin._labels = tuple(old.changed(at, new) for old, new in zip(self._labels, labels, strict=True))
        if any(new is not old for new, old in zip(twin._labels, self._labels, strict=True)):
            twin._of_tier = {}
            if any(twin._label(name) is not self._label(name) for name in ("folder", "key")):
                twin._reading = None
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
                names = map(natural, *(self._label(name).at(np.arange(self.count)) for name in ("folder", "key")))
                self._reading = ReadingOrder.of(list(names))
        order, rank = self._reading
        at = self.places(ids)
        return self._neighbour(at, order[rank[at] - 1]), self._neighbour(at, order[rank[at] + 1])

    def number(self, name: str, ids: Ids) -> Column:
        """A numeric fact (one of `NUMBERS`) about each id, NaN where it or the id is unknown.

        Times are epoch seconds, `stability` is in days. Raises ValueError for another name.
        """
        facts: Column = self._numbers[_place(name, NUMBERS)][self.places(ids)]
        return facts

    def label(self, name: str, ids: Ids) -> Texts:
        """A textual fact (one of `LABELS`) about each id, "" for an unknown id. Raises ValueError for another name."""
        return self._label(name).at(self.places(ids))

    def scope(self, wanted: Filter, now: float) -> MemoryScope:
        """The memories that the filter admits at the time `now` (epoch seconds).

        Never a deprecated one, nor one that expired before `now` (features C6, F7).
        """
        admitted: Mask = self._numbers[_ENDS][:-1] >= now
        if wanted.folder:
            admitted &= self._label("folder").where(_within((wanted.folder,)))
        if wanted.folders:
            admitted &= self._label("folder").where(_within(wanted.folders))
        if wanted.tier:
            admitted &= self._label("tier").where(lambda value: value == wanted.tier)
        if wanted.context_type:
            admitted &= self._label("context_type").where(lambda value: value == wanted.context_type)
        if wanted.memories is not None:
            admitted &= np.isin(self._known, np.array(wanted.memories, np.int64))
        return MemoryScope(self, admitted)

    def of_tier(self, tier: str) -> Ids:
        """All memories of a tier, ascending."""
        tier = own(tier)
        found = self._of_tier.get(tier)
        if found is None:
            found = self._of_tier[tier] = self._known[self._label("tier").where(lambda value: value == tier)]
        return found.copy()

    def oldest_first(self, scope: Scope) -> Ids:
        """All admitted memories of which it is known when they were made, by that time, then by id."""
        made = self._numbers[_place("created_at", NUMBERS)][:-1]
        known = np.flatnonzero(np.isfinite(made))
        ids: Ids = self._known[known[np.argsort(made[known], kind="stable")]]
        return ids if scope.complete else ids[scope.admits(ids)]

    def in_folder(self, folder: str) -> Ids:
        """All memories whose folder is exactly this one, ascending."""
        folder = own(folder)
        return self._known[self._label("folder").where(lambda value: value == folder)]

    @property
    def _known(self) -> Ids:
        """All memories, ascending, not copied."""
        return self._ids[:-1]

    def _label(self, name: str) -> Labels:
        return self._labels[_place(name, LABELS)]

    def _name(self, place: int) -> str:
        """What the memory at a place sorts by in reading order."""
        at = np.array([place])
        return natural(self._label("folder").at(at)[0], self._label("key").at(at)[0])

    def _neighbour(self, at: Places, other: NDArray[np.integer[Any]]) -> Ids:
        """The memory at the place `other` where it and the one at the place `at` are neighbours, else `UNKNOWN`."""
        characters = self._numbers[_place("characters", NUMBERS)]
        # The place behind the last is that of an unknown id, which has neither a folder nor a length.
        linked = self._label("folder").equal(at, other) & (characters[at] < SHORT) & (characters[other] < SHORT)
        return np.where(linked, self._ids[other], UNKNOWN)

    def _take_chunks(self, chunks: Ids, parents: Ids) -> None:
        order = np.argsort(chunks, kind="stable")
        self._chunks, self._parents = chunks[order], parents[order]
        self._places = table_of_places(self._known, self._chunks, self._parents)


def table_of_places(memories: Ids, chunks: Ids, parents: Ids) -> Places:
    """The place among `memories` of every id up to the largest of a memory or chunk; -1 in front, behind and between.

    `memories` ascend; `parents` are those of the chunks.
    """
    largest = max(memories.max(initial=0), chunks.max(initial=0))
    places: Places = np.full(largest + 2, -1, np.int32)
    places[chunks] = np.searchsorted(memories, parents)
    places[memories] = np.arange(len(memories))
    return places


def _within(folders: Sequence[str]) -> Callable[[str], bool]:
    """The test for a folder being one of these or inside one; the empty name is that of the root."""
    names = [folder.rstrip("/") for folder in folders]
    return lambda value: any(not name or value == name or value.startswith(f"{name}/") for name in names)


def _written(column: Column, at: NDArray[np.intp], values: Column) -> Column:
    """The column with these values at these places; itself when they are there already."""
    if np.array_equal(column[at], values, equal_nan=True):
        return column
    written = column.copy()
    written[at] = values
    return written


def _place(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise ValueError(f"no column is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


def transposed(rows: Sequence[tuple[Any, ...]]) -> tuple[Ids, list[list[str]], list[Column]]:
    """Ids, labels (a list each of `LABELS`) and numbers (a column each of `NUMBERS`, and the ends)."""
    table = dict(zip(ATTRIBUTES, zip(*rows, strict=True) if rows else [()] * len(ATTRIBUTES), strict=True))
    labels = [list(table[name]) for name in LABELS]
    numbers = [np.array(table[name], np.float64) for name in NUMBERS]  # None becomes NaN
    for name in ("created_at", "updated_at"):
        known = numbers[_place(name, NUMBERS)]
        known[(known == UNKNOWN_TIME) | (known < EARLIEST) | (known > LATEST)] = np.nan
    tier = np.array(table["tier"], np.object_)
    ends = numbers[_place("expires_at", NUMBERS)].copy()
    unlimited = np.isnan(ends)
    ends[unlimited] = np.inf
    temporary = unlimited & (tier == Tier.TEMPORARY)
    ends[temporary] = numbers[_place("created_at", NUMBERS)][temporary] + TEMPORARY_LIFE
    ends[np.isnan(ends)] = np.inf  # nobody can tell when a temporary memory without a date is over
    ends[tier == Tier.DEPRECATED] = -np.inf
    return np.array(table["id"], np.int64), labels, [*numbers, ends]
