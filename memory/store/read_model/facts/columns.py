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
from speckit_memory.pipeline.process.clock import opening

TEMPORARY_LIFE = 7 * 86_400.0
"""Lifetime in seconds of a temporary memory that has no expiry date (feature F7)."""

SHORT = 600
"""Characters below which a memory counts as a short note, to be read together with its neighbours (measured)."""

UNKNOWN = -1
"""The memory id returned for an id that the store does not hold."""

Places = NDArray[np.int32]

_ENDS = len(NUMBERS)
"""Index of the column after the numbers: the time from which a memory is no longer admitted."""


class Columns:
    """Facts about memories. Implements `pipeline.ports.Attributes`. Immutable.

    Every column is ordered by memory id and has one extra element at the end, the value for an unknown id, which the
    place -1 reads. `_places` maps every id up to the largest stored one to its place; its first and last elements
    serve ids below and above that range. Arrays are never written to, so states can share them, and processes a file.
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
        """Take rows of `facts.ATTRIBUTES` by ascending id, and chunk ids with the memory id of each."""
        ids, labels, numbers = transpose_columns(rows)
        self._ids = np.append(ids, UNKNOWN)
        self._labels = tuple(map(Labels.of, labels))
        self._numbers = tuple(np.append(column, np.nan) for column in numbers)
        self._of_tier, self._reading = {}, None
        self._take_chunks(chunks, parents)

    @classmethod
    def of_segment(cls, segment: Container) -> Columns:
        """Columns backed by the mapped arrays of a segment file."""
        columns = cls.__new__(cls)
        columns._ids = segment.array("memories.ids")
        columns._labels = tuple(Labels.of_segment(segment, f"label.{name}") for name in LABELS)
        columns._numbers = tuple(segment.array(f"number.{name}") for name in (*NUMBERS, "ends"))
        columns._chunks, columns._parents = segment.array("chunks.ids"), segment.array("chunks.parents")
        columns._places = segment.array("places")
        columns._of_tier, columns._reading = {}, ReadingOrder.of_segment(segment)
        return columns

    def replaced(self, gone: Ids, rows: Sequence[tuple[Any, ...]], chunks: Ids, parents: Ids) -> Columns:
        """A copy without the memories in `gone`, with these rows and chunks replacing older ones of the same memory.

        Args:
            gone: Ids of deleted memories.
            rows: New or changed rows of `facts.ATTRIBUTES`, by ascending id.
            chunks: Ids of the chunks of these memories.
            parents: Memory id of each chunk.
        """
        ids, labels, numbers = transpose_columns(rows)
        outdated = np.append(gone, ids)
        if not len(gone) and np.isin(ids, self._known).all():
            twin = self.updated(rows)
        else:
            drop = np.flatnonzero(np.isin(self._known, outdated))
            kept = np.delete(self._ids, drop)
            # `np.insert` takes positions before the insertion; the last element remains that of unknown ids.
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
        # Chunks of changed memories are replaced as a whole.
        current = ~np.isin(self._parents, outdated)
        twin._take_chunks(np.append(self._chunks[current], chunks), np.append(self._parents[current], parents))
        return twin

    def updated(self, rows: Sequence[tuple[Any, ...]]) -> Columns:
        """A copy with new facts about memories that are already there; their chunks stay the same."""
        ids, labels, numbers = transpose_columns(rows)
        at = np.searchsorted(self._known, ids)
        twin = Columns.__new__(Columns)
        for name in Columns.__slots__:
            # Share everything, then replace the arrays that differ.
            setattr(twin, name, getattr(self, name))
        twin._numbers = tuple(_replace_at(old, at, new) for old, new in zip(self._numbers, numbers, strict=True))
        twin._labels = tuple(old.changed(at, new) for old, new in zip(self._labels, labels, strict=True))
        if any(new is not old for new, old in zip(twin._labels, self._labels, strict=True)):
            twin._of_tier = {}
            if any(twin._label(name) is not self._label(name) for name in ("folder", "key")):
                twin._reading = None
        return twin

    @property
    def ids(self) -> Ids:
        """Ids of all memories, ascending."""
        return self._ids[:-1].copy()

    @property
    def chunks(self) -> Ids:
        """Ids of all chunks, ascending."""
        return self._chunks.copy()

    def chunks_of(self, memories: Ids) -> Ids:
        """Ids of all chunks of these memories, ascending."""
        return self._chunks[np.isin(self._parents, memories)]

    @property
    def count(self) -> int:
        """Number of memories in the store."""
        return len(self._ids) - 1

    def places(self, ids: Ids) -> Places:
        """Index in `self.ids` of each id (for a chunk, of its memory); -1 for an unknown id."""
        places: Places = self._places.take(ids, mode="clip")
        return places

    def parents(self, ids: Ids) -> Ids:
        """Memory id of each id; a memory is its own parent; `UNKNOWN` for an unknown id."""
        parents: Ids = self._ids[self.places(ids)]
        return parents

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The memories just before and just after each id in natural key order; `UNKNOWN` where there is none.

        Only short notes of the same folder have neighbours, such as the turns of a conversation or journal entries.
        """
        if self._reading is None:
            with opening():
                names = map(natural, *(self._label(name).at(np.arange(self.count)) for name in ("folder", "key")))
                self._reading = ReadingOrder.of(list(names))
        # `order` has -1 at both ends, so the neighbours of the first and last memory are the unknown one.
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

        Deprecated memories and those that expired before `now` are never admitted (features C6, F7).
        """
        # the end of deprecated memories is -inf, so that no time admits them
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
        """Ids of all memories of a tier, ascending."""
        found = self._of_tier.get(tier)
        if found is None:
            found = self._of_tier[tier] = self._known[self._label("tier").where(lambda value: value == tier)]
        return found.copy()

    def oldest_first(self, scope: Scope) -> Ids:
        """Ids of all admitted memories with a known creation time, by that time, then by id."""
        made = self._numbers[_place("created_at", NUMBERS)][:-1]
        known = np.flatnonzero(np.isfinite(made))
        # stable: ids ascend, so memories of the same time are in order of id
        ids: Ids = self._known[known[np.argsort(made[known], kind="stable")]]
        return ids if scope.complete else ids[scope.admits(ids)]

    def in_folder(self, folder: str) -> Ids:
        """Ids of all memories in exactly this folder, ascending."""
        return self._known[self._label("folder").where(lambda value: value == folder)]

    @property
    def _known(self) -> Ids:
        """Ids of all memories, ascending; not a copy."""
        return self._ids[:-1]

    def _label(self, name: str) -> Labels:
        return self._labels[_place(name, LABELS)]

    def _name(self, place: int) -> str:
        """The reading-order sort key of the memory at a place."""
        at = np.array([place])
        return natural(self._label("folder").at(at)[0], self._label("key").at(at)[0])

    def _neighbour(self, at: Places, other: NDArray[np.integer[Any]]) -> Ids:
        """The memory at the place `other` if it and the memory at the place `at` are neighbours, else `UNKNOWN`."""
        characters = self._numbers[_place("characters", NUMBERS)]
        # Place -1, that of an unknown id, has no folder and a NaN length: it has no neighbours.
        linked = self._label("folder").equal(at, other) & (characters[at] < SHORT) & (characters[other] < SHORT)
        return np.where(linked, self._ids[other], UNKNOWN)

    def _take_chunks(self, chunks: Ids, parents: Ids) -> None:
        order = np.argsort(chunks, kind="stable")
        self._chunks, self._parents = chunks[order], parents[order]
        self._places = table_of_places(self._known, self._chunks, self._parents)


def table_of_places(memories: Ids, chunks: Ids, parents: Ids) -> Places:
    """The place in `memories` of every id up to the largest one; -1 at both ends and for ids that are not stored.

    `memories` is ascending; `parents` holds the memory of each chunk.
    """
    largest = max(memories.max(initial=0), chunks.max(initial=0))
    # places: (largest + 2,) int32; the last element serves all larger ids, which `take(mode="clip")` maps to it
    places: Places = np.full(largest + 2, -1, np.int32)
    places[chunks] = np.searchsorted(memories, parents)
    places[memories] = np.arange(len(memories))
    return places


def _within(folders: Sequence[str]) -> Callable[[str], bool]:
    """A test whether a folder is one of these or inside one; the empty name is the root folder."""
    names = [folder.rstrip("/") for folder in folders]
    return lambda value: any(not name or value == name or value.startswith(f"{name}/") for name in names)


def _replace_at(column: Column, at: NDArray[np.intp], values: Column) -> Column:
    """The column with these values at these places; the same object when nothing changes."""
    if np.array_equal(column[at], values, equal_nan=True):
        return column
    written = column.copy()
    written[at] = values
    return written


def _place(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise ValueError(f"no column is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


def transpose_columns(rows: Sequence[tuple[Any, ...]]) -> tuple[Ids, list[list[str]], list[Column]]:
    """Ids, labels (one list per name in `LABELS`) and numbers (one column per name in `NUMBERS`, then the ends)."""
    table = dict(zip(ATTRIBUTES, zip(*rows, strict=True) if rows else [()] * len(ATTRIBUTES), strict=True))
    labels = [list(table[name]) for name in LABELS]
    # labels: one list per name; numbers: one (n,) float64 column per name
    numbers = [np.array(table[name], np.float64) for name in NUMBERS]  # None becomes NaN
    for name in ("created_at", "updated_at"):
        known = numbers[_place(name, NUMBERS)]
        known[(known == UNKNOWN_TIME) | (known < EARLIEST) | (known > LATEST)] = np.nan
    tier = np.array(table["tier"], np.object_)
    # ends: expires_at, else created_at + 7 days for temporary memories, else inf; -inf for deprecated ones
    ends = numbers[_place("expires_at", NUMBERS)].copy()
    unlimited = np.isnan(ends)
    ends[unlimited] = np.inf
    temporary = unlimited & (tier == Tier.TEMPORARY)
    ends[temporary] = numbers[_place("created_at", NUMBERS)][temporary] + TEMPORARY_LIFE
    ends[np.isnan(ends)] = np.inf  # the end of a temporary memory without a creation date is unknown
    ends[tier == Tier.DEPRECATED] = -np.inf
    return np.array(table["id"], np.int64), labels, [*numbers, ends]
