"""An inverted index with insertions and deletions (feature C3).

The index is a large frozen base, stored as compressed sparse rows in a segment, plus a few small parts with later
additions. Copies share all of them, so that copying is cheap even for a large vocabulary; changing the copy never
changes the answers of the original.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.words.late_entries import LateEntries, LateTexts, with_latest
from speckit_memory.memory.store.read_model.words.word_order import WordOrder
from speckit_memory.memory.store.segment_files.container import Array, Container
from speckit_memory.memory.store.segment_files.row_lists import RowLists
from speckit_memory.memory.store.segment_files.term_table import HashedTerms, TermTable
from speckit_memory.pipeline.ports import Ids, Postings

HOLE = -1
"""The value in `ids` of a row whose entry was removed."""

MOST_KNOWN = 250_000
"""Postings cached, 2 MB: the steps of a search ask for the same terms, and reading those of one takes microseconds."""
TERM_SIZE = 50
"""What a term counts beyond its postings: the arrays of one without any take 400 bytes."""

Rows = NDArray[np.int32]
Frequencies = NDArray[np.float32]
_NONE = Postings(np.empty(0, np.int32), np.empty(0, np.float32))


class InvertedIndex(ABC):
    """Which entries contain a term and how often. Implements `pipeline.ports.TermIndex`.

    Returned arrays are copies, since even a read-only array is not safe from its receiver: `np.add.at` writes to it.
    """

    __slots__ = ("_ids", "_lengths", "_rows")

    def __init__(self, ids: Ids, lengths: Frequencies, rows: Rows | None = None) -> None:
        """Take the id and the number of tokens of each row, and the row of each id where it is known."""
        self._ids = ids
        self._lengths = lengths
        self._rows = rows

    @property
    def ids(self) -> Ids:
        """Id of each row, `HOLE` where the entry was removed."""
        return self._ids.copy()

    def ids_of(self, rows: NDArray[np.integer]) -> Ids:
        """Ids of these rows, without copying the others."""
        return self._ids.take(rows)

    @property
    def lengths(self) -> Frequencies:
        """Number of tokens of each row, repeats included; 0 for a hole."""
        return self._lengths.copy()

    @property
    def count(self) -> int:
        """Number of entries, holes not counted."""
        return len(self._ids)

    def rows_of(self, ids: Ids) -> Rows:
        """Row of each id, `HOLE` for an id without an entry."""
        table = self._rows
        if table is None:
            table = self._rows = table_of_rows(self._ids)
        rows: Rows = table.take(ids, mode="clip")
        return rows

    def postings(self, term: str) -> Postings:
        """Rows (ascending) and frequencies of a term; empty when the term is unknown."""
        found = self._of(term)
        return Postings(found.rows.copy(), found.frequency.copy())

    def holders(self, term: str) -> int:
        """Number of entries that contain a term."""
        return len(self._of(term).rows)

    def holding(self, term: str, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows contain a term, without copying its postings."""
        return among(self._of(term).rows, np.array(rows, np.int32))

    @abstractmethod
    def adjacent(self, first: str, second: str) -> Rows:
        """Rows in which the second term directly follows the first, ascending.

        Raises ValueError unless the index is ordered.
        """

    @abstractmethod
    def _of(self, term: str) -> Postings:
        """The postings of a term. Shared: do not hand them out."""


class PostingsIndex(InvertedIndex):
    """The index of a segment, and what was added and removed since.

    Rows are numbers 0, 1, … in order of arrival. A removed entry leaves a hole (`HOLE` in `ids`, length 0) that no
    posting mentions.

    The base is never changed; additions are stored apart from it. The first query for a term reads its postings, merges
    both and caches the result, so that every step of a search reads the same ones. That is one idempotent assignment,
    so any number of threads may query while another one takes a copy. `add` and `remove` are for a copy that no other
    thread has seen: an index that was `published` refuses them.

    An `ordered` index also records which words follow each other.
    """

    __slots__ = (
        "_added",
        "_frequency",
        "_height",
        "_known",
        "_late",
        "_live",
        "_order",
        "_published",
        "_room",
        "_row_lists",
        "_starts",
        "_terms",
    )

    def __init__(self, segment: Container, field: str, level: str) -> None:
        """Take the index of a field from a segment; parts of it are read when a query needs them."""

        def array(name: str) -> Array:
            return segment.array(f"{field}.{level}.{name}")

        if level == "memory":
            ids, rows = segment.array("memories.ids")[:-1], segment.array("memories.rows")
        else:
            ids, rows = segment.array("chunks.ids"), segment.array("chunks.rows")
        super().__init__(ids, array("lengths"), rows)
        # the base: terms, where the postings of each begin in `_frequency`, and their rows
        self._terms = TermTable(segment, f"{field}.{level}")
        self._starts: memoryview[int] = array("starts").data
        self._row_lists = RowLists(array("gaps"), array("gap_starts"))
        self._frequency: NDArray[np.integer[Any]] = array("frequency")
        self._height = len(ids)
        self._order: WordOrder | None = None
        if f"{field}.{level}.places" in segment:
            self._order = WordOrder(*map(array, ("places", "place_starts", "first")))
        self._late: tuple[LateEntries, ...] = ()
        self._added: dict[int, str] = {}
        self._known: dict[str, Postings] = {}
        self._room = MOST_KNOWN
        self._live = len(ids)
        self._published = False

    def copy(self) -> PostingsIndex:
        """An index with the same answers that changes independently; cheap, since the base is shared."""
        twin = PostingsIndex.__new__(PostingsIndex)
        for name in (*InvertedIndex.__slots__, *PostingsIndex.__slots__):
            setattr(twin, name, getattr(self, name))
        twin._known, twin._room = {}, MOST_KNOWN
        twin._added, twin._published = self._added.copy(), False
        return twin

    def published(self) -> PostingsIndex:
        """This index, after which it rejects changes."""
        self._published = True
        return self

    @property
    def count(self) -> int:
        """Number of entries, holes not counted."""
        return self._live

    def known(self, terms: HashedTerms) -> Iterator[str]:
        """Those of these terms that are in `terms`, some perhaps twice."""
        late = (term for late in self._late for term in terms.names if term in late.codes)
        return chain(self._terms.known(terms), late)

    def terms(self) -> Iterator[str]:
        """All terms, some perhaps twice, and some perhaps that only removed entries contained."""
        return chain(self._terms, *(late.codes for late in self._late))

    def near(self, term: str, edits: int) -> Iterable[str]:
        """A superset of the terms in `terms` within `edits` edits of a term."""
        return chain(self._terms.near(term, edits), *(late.codes for late in self._late))

    def adjacent(self, first: str, second: str) -> Rows:
        """Rows in which the second term directly follows the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if self._order is None:
            raise ValueError("the index does not know the order of its words")
        before, after = self._terms.get(first), self._terms.get(second)
        found = np.empty(0, np.int32)
        if before is not None and after is not None:
            found = self._order.adjacent(
                (before, self._base_postings(first, before)), (after, self._base_postings(second, after))
            )
            if len(found):
                found = found[self._ids[found] != HOLE]
        if not self._added:
            return found
        # Rows added since the segment are few: their texts are kept and scanned.
        both = np.intersect1d(self.postings(first).rows, self.postings(second).rows, assume_unique=True)
        pair = f" {first} {second} "
        later = [row for row in both[both >= self._height].tolist() if pair in f"{self._added[row]} "]
        return np.append(found, np.array(later, np.int32))

    def add(self, late: LateTexts) -> None:
        """Add entries. Raises ValueError for an id that is already there, TypeError once the index was published."""
        self._require_unpublished()
        ids = late.ids
        there = ids[self.rows_of(ids) != HOLE].tolist()
        if there or len(np.unique(ids)) < len(ids):
            raise ValueError(f"entries are in the index already: {there or ids.tolist()}")
        if not len(ids):
            return
        first, size = len(self._ids), len(ids)
        self._known, self._room = {}, MOST_KNOWN
        self._late = with_latest(self._late, LateEntries.of(late, first))
        # Without word order the texts are never scanned again, and an entry may have several: nothing to keep.
        if self._order is not None:
            self._added.update(zip(range(first, first + size), late.texts, strict=True))
        self._ids = np.append(self._ids, ids)
        lengths = np.bincount(late.entry_of_text, late.sizes, size).astype(np.float32)
        self._lengths = np.append(self._lengths, lengths)
        self._rows = None
        self._live += size

    def remove(self, ids: Sequence[int] | Ids) -> None:
        """Remove entries; unknown ids are ignored. Raises TypeError once the index was published."""
        self._require_unpublished()
        rows = np.unique(self.rows_of(np.asarray(ids, np.int64)))
        rows = rows[rows != HOLE]
        if not len(rows):
            return
        for row in rows.tolist():
            self._added.pop(row, None)
        self._live -= len(rows)
        self._ids, self._lengths = self._ids.copy(), self._lengths.copy()
        self._ids[rows] = HOLE
        self._rows = None
        self._lengths[rows] = 0
        self._known, self._room = {}, MOST_KNOWN

    def _require_unpublished(self) -> None:
        if self._published:
            raise TypeError("searches use this index: it cannot be changed; take a copy")

    def _of(self, term: str) -> Postings:
        """The postings of a term. Shared: do not hand them out."""
        found = self._known.get(term)
        if found is None:
            found = self._looked_up(term)
            self._room -= len(found.rows) + TERM_SIZE
            if self._room < 0:
                self._known, self._room = {}, MOST_KNOWN
            self._known[term] = found
        return found

    def _looked_up(self, term: str) -> Postings:
        code = self._terms.get(term)
        found = _NONE if code is None else self._of_segment(code)
        if late := [late.postings(term) for late in self._late if term in late.codes]:
            rows = np.concatenate([each.rows for each in (found, *late)])
            found = Postings(rows, np.concatenate([each.frequency for each in (found, *late)]))
        if self._live == len(self._ids):
            return found
        kept = self._ids[found.rows] != HOLE
        return Postings(found.rows[kept], found.frequency[kept])

    def _of_segment(self, code: int) -> Postings:
        """The postings of a term of the base by its number, those of removed entries included; new arrays."""
        start, end = self._starts[code], self._starts[code + 1]
        return Postings(self._row_lists.of(code, end - start), self._frequency[start:end].astype(np.float32))

    def _base_postings(self, term: str, code: int) -> Postings:
        """The postings of a term of the base, those of removed entries included, as the word order has them."""
        unchanged = self._live == len(self._ids) and not self._late
        return self._of(term) if unchanged else self._of_segment(code)


def among(ascending: Rows, rows: Rows) -> NDArray[np.bool_]:
    """Which of a few rows are in an ascending list, by binary search."""
    if not len(ascending):
        return np.zeros(len(rows), np.bool_)
    # a row beyond the end is compared with the last one
    found: NDArray[np.bool_] = ascending.take(ascending.searchsorted(rows), mode="clip") == rows
    return found


def table_of_rows(ids: Ids) -> Rows:
    """The row of every id from 0 to just above the largest one; `HOLE` for an id without a row.

    With this table, looking up rows is one gather; it is dense, since memories and chunks share one id sequence.
    """
    table = np.full(int(ids.max(initial=0)) + 2, HOLE, np.int32)
    table[ids] = np.arange(len(ids))
    table[-1] = HOLE  # undoes the writes of holes (ids of -1), and answers for all larger ids, which are clipped
    return table
