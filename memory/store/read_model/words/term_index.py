"""An inverted index that documents join and leave (feature C3).

The index is a large frozen base, laid out as compressed sparse rows in both directions, and a few small parts of what
was added since. A copy shares all of them, so that it costs little whatever the vocabulary; adding to the copy or
removing from it never changes what the original answers.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.state.terms import Terms, TermsInMemory
from speckit_memory.memory.store.read_model.words.late_entries import LateEntries, LateTexts, grouped, with_latest
from speckit_memory.memory.store.read_model.words.numbered import flattened
from speckit_memory.memory.store.read_model.words.word_order import WordOrder
from speckit_memory.memory.store.segment_files.container import Array, Container
from speckit_memory.memory.store.segment_files.term_table import TermTable
from speckit_memory.pipeline.ports import Ids, Postings
from speckit_memory.pipeline.ports.immutable import own

HOLE = -1
"""Stands in `ids` for a row whose entry was removed."""

ADDITIONS = 1000
"""So many entries more than at the last build may be added before the index is built anew."""

Rows = NDArray[np.int32]
Frequencies = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Base:
    """All postings at the time of the last build: by term (`starts`) and, for removal, by row (`row_starts`)."""

    terms: Terms
    starts: Sequence[int] | NDArray[np.int64]
    every: Postings
    height: int
    row_starts: NDArray[np.int64]
    row_codes: NDArray[np.int32]

    @classmethod
    def of(cls, codes: dict[str, int], height: int, code: Ids, rows: Rows, frequency: Frequencies) -> _Base:
        """Take postings ordered by code, then row; `codes` numbers its terms in iteration order."""
        # Within a row a stable sort keeps the terms in the order of their codes, as a second sort key would.
        by_row = np.argsort(rows, kind="stable")
        every = Postings(rows, frequency)
        return cls(
            terms=TermsInMemory(codes),
            starts=np.searchsorted(code, np.arange(len(codes) + 1)).tolist(),
            every=every,
            height=height,
            row_starts=np.searchsorted(rows[by_row], np.arange(height + 1)),
            row_codes=code[by_row].astype(np.int32),
        )

    def postings(self, term: str) -> Postings:
        """The postings of a term, copied."""
        code = self.terms.get(term)
        if code is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        start, end = self.starts[code], self.starts[code + 1]
        return Postings(self.every.rows[start:end].copy(), self.every.frequency[start:end].copy())

    def holders(self, term: str) -> int:
        """How many rows hold a term."""
        code = self.terms.get(term)
        return 0 if code is None else int(self.starts[code + 1] - self.starts[code])

    def holding(self, term: str, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows hold a term."""
        code = self.terms.get(term)
        if code is None:
            return np.zeros(len(rows), np.bool_)
        return among(self.every.rows[self.starts[code] : self.starts[code + 1]], rows)

    def codes_of(self, rows: Rows) -> NDArray[np.int32]:
        """The codes of the terms of these rows; one that several hold is there several times."""
        starts, ends = self.row_starts[rows], self.row_starts[rows + 1]
        codes = [self.row_codes[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return np.concatenate([np.empty(0, np.int32), *codes])


class TermIndex:
    """Which entries hold a term, and how often. Implements `pipeline.ports.TermIndex`.

    Rows are numbers 0, 1, … in the order of arrival. A removed entry leaves a hole (`HOLE` in `ids`, length 0) that no
    posting mentions; when more than a third of the rows are holes, the rows are numbered anew.

    What is added stays beside the base, what is removed marks the terms of the base that it held. The first query for a
    term that changed brings both together and keeps the result. That is one idempotent assignment, so that any number
    of threads may query while another one takes a copy; `add` and `remove` belong to a copy that nobody else has seen
    yet: an index that was `published` refuses them. What is handed out is copied, for no array is safe from its holder:
    `np.add.at` writes into read-only ones as well.

    An index that is asked to be `ordered` knows which words follow one another.
    """

    __slots__ = (
        "_added",
        "_base",
        "_ids",
        "_late",
        "_lengths",
        "_lists",
        "_live",
        "_marked",
        "_order",
        "_published",
        "_rows",
    )
    _added: dict[int, str]
    _late: tuple[LateEntries, ...]
    _lists: dict[str, Postings]
    _marked: NDArray[np.bool_] | None

    def __init__(self, entries: Iterable[tuple[int, str]] = (), *, ordered: bool = False) -> None:
        """Build from pairs of an id and a text (`numbered`) with distinct ids, in one pass over the tokens."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        ids = array("q")

        def texts() -> Iterator[str]:
            for id_, text in entries:
                ids.append(id_)
                yield text

        flat, sizes = flattened(texts(), numbering)
        height = len(ids)
        code, rows, frequency = grouped(flat, np.repeat(np.arange(height), sizes), height)
        self._base = _Base.of(dict(numbering), height, code, rows, frequency)
        self._order = WordOrder(flat.astype(np.int32), sizes, len(numbering)) if ordered else None
        self._unchanged()
        self._ids: Ids = np.array(ids, np.int64)
        self._rows: Rows | None = None
        self._lengths: Frequencies = sizes.astype(np.float32)
        self._live = height
        self._published = False

    @classmethod
    def of_segment(cls, segment: Container, field: str, level: str) -> TermIndex:
        """The index of a field that stands in a file; nothing of it is read before a query needs it."""

        def array(name: str) -> Array:
            return segment.array(f"{field}.{level}.{name}")

        index = cls.__new__(cls)
        if level == "memory":
            index._ids, index._rows = segment.array("memories.ids")[:-1], segment.array("memories.rows")
        else:
            index._ids, index._rows = segment.array("chunks.ids"), segment.array("chunks.rows")
        index._lengths = array("lengths")
        index._base = _Base(
            terms=TermTable(segment, f"{field}.{level}"),
            starts=array("starts"),
            every=Postings(array("rows"), array("frequency")),
            height=len(index._ids),
            row_starts=array("row_starts"),
            row_codes=array("row_codes"),
        )
        index._order = None
        if f"{field}.{level}.places" in segment:
            index._order = WordOrder.of_places(*map(array, ("places", "place_starts", "sizes", "first")))
        index._unchanged()
        index._live = len(index._ids)
        index._published = False
        return index

    def copy(self) -> TermIndex:
        """An index that answers the same and changes independently; cheap, for the base is shared."""
        twin = TermIndex.__new__(TermIndex)
        twin._base = self._base
        twin._lists = self._lists.copy()
        twin._late, twin._marked = self._late, self._marked
        twin._added = self._added.copy()
        twin._order = self._order
        twin._ids = self._ids
        twin._rows = self._rows
        twin._lengths = self._lengths
        twin._live = self._live
        twin._published = False
        return twin

    def published(self) -> TermIndex:
        """This index, which changes no more."""
        self._published = True
        return self

    @property
    def ids(self) -> Ids:
        """Id of each row, `HOLE` where the entry was removed."""
        return self._ids.copy()

    @property
    def lengths(self) -> Frequencies:
        """Number of tokens of each row, repeats included; 0 for a hole."""
        return self._lengths.copy()

    @property
    def count(self) -> int:
        """Number of entries, holes not counted."""
        return self._live

    def rows_of(self, ids: Ids) -> Rows:
        """The row of each id, `HOLE` for an id without an entry."""
        table = self._rows
        if table is None:
            table = self._rows = table_of_rows(self._ids)
        rows: Rows = table.take(ids, mode="clip")
        return rows

    def postings(self, term: str) -> Postings:
        """Rows (ascending) and frequencies of a term; empty when the term is unknown."""
        term = own(term)
        if not self._changed(term):
            return self._base.postings(term)
        found = self._brought_together(term)
        return Postings(found.rows.copy(), found.frequency.copy())

    def holders(self, term: str) -> int:
        """How many entries hold a term."""
        return len(self._brought_together(term).rows) if self._changed(term) else self._base.holders(term)

    def holding(self, term: str, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows hold a term; none of its postings is copied."""
        term, rows = own(term), np.array(rows, np.int32)
        if self._changed(term):
            return among(self._brought_together(term).rows, rows)
        return self._base.holding(term, rows)

    def knows(self, term: str) -> bool:
        """Whether the term is among `terms`."""
        return any(term in late.codes for late in self._late) or self._base.terms.get(term) is not None

    def terms(self) -> Iterator[str]:
        """The terms that entries hold, some of them twice, and perhaps some that only removed entries held."""
        return chain(self._base.terms, *(late.codes for late in self._late))

    def near(self, term: str, edits: int) -> Iterable[str]:
        """Of `terms` all that are at most so many edits away from another, and some that are not."""
        return chain(self._base.terms.near(term, edits), *(late.codes for late in self._late))

    def adjacent(self, first: str, second: str) -> Rows:
        """The rows in which the second term stands right after the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if self._order is None:
            raise ValueError("the index does not know the order of its words")
        before, after = self._base.terms.get(first), self._base.terms.get(second)
        found = np.empty(0, np.int32)
        if before is not None and after is not None:
            found = self._order.adjacent(before, after)
            found = found[self._ids[found] != HOLE]
        if not self._added:
            return found
        height = self._base.height
        # Rows added since the build are few: their texts are kept and simply read.
        both = np.intersect1d(self.postings(first).rows, self.postings(second).rows, assume_unique=True)
        pair = f" {first} {second} "
        later = [row for row in both[both >= height].tolist() if pair in f"{self._added[row]} "]
        return np.append(found, np.array(later, np.int32))

    def add(self, late: LateTexts) -> None:
        """Add entries. Raises ValueError for an id that is in the index, and TypeError once that was published."""
        self._require_unpublished()
        ids = late.ids
        there = ids[self.rows_of(ids) != HOLE].tolist()
        if there or len(np.unique(ids)) < len(ids):
            raise ValueError(f"entries are in the index already: {there or ids.tolist()}")
        if not len(ids):
            return
        first, size = len(self._ids), len(ids)
        latest = LateEntries.of(late, first)
        self._lists = {term: found for term, found in self._lists.items() if term not in latest.codes}
        self._late = with_latest(self._late, latest)
        # Where the order of words is not asked for, an entry may have several texts, and none is read again.
        added = range(first, first + size)
        self._added.update(zip(added, late.texts, strict=True) if self._order is not None else dict.fromkeys(added, ""))
        self._ids = np.append(self._ids, ids)
        lengths = np.bincount(late.entry_of_text, late.numbered.sizes, size).astype(np.float32)
        self._lengths = np.append(self._lengths, lengths)
        self._rows = None
        self._live += size
        self._compact_if_due()

    def remove(self, ids: Sequence[int] | Ids) -> None:
        """Remove entries; an unknown id is no error. Raises TypeError once the index was published."""
        self._require_unpublished()
        rows = np.unique(self.rows_of(np.asarray(ids, np.int64)))
        rows = rows[rows != HOLE]
        if not len(rows):
            return
        of_base = rows < self._base.height
        self._marked = np.zeros(len(self._base.terms), np.bool_) if self._marked is None else self._marked.copy()
        self._marked[self._base.codes_of(rows[of_base])] = True
        for row in rows[~of_base].tolist():
            del self._added[row]
        self._live -= len(rows)
        self._ids, self._lengths = self._ids.copy(), self._lengths.copy()
        self._ids[rows] = HOLE
        self._rows = None
        self._lengths[rows] = 0
        self._lists = {term: found for term, found in self._lists.items() if HOLE not in self._ids[found.rows]}
        self._compact_if_due()

    def _unchanged(self) -> None:
        """Nothing was added to the base or removed from it."""
        self._late, self._marked = (), None
        self._added, self._lists = {}, {}

    def _changed(self, term: str) -> bool:
        """Whether entries that hold the term may have been added or removed."""
        if any(term in late.codes for late in self._late):
            return True
        if self._marked is None:
            return False
        code = self._base.terms.get(term)
        return code is not None and bool(self._marked[code])

    def _require_unpublished(self) -> None:
        if self._published:
            raise TypeError("an index that searches use does not change; take a copy")

    def _brought_together(self, term: str) -> Postings:
        """The postings of a term that changed; not to be handed out."""
        found = self._lists.get(own(term))
        if found is None:
            found = self._lists[own(term)] = self._merged(own(term))
        return found

    def _merged(self, term: str) -> Postings:
        found = [self._base.postings(term), *(late.postings(term) for late in self._late if term in late.codes)]
        rows = np.concatenate([each.rows for each in found])
        frequency = np.concatenate([each.frequency for each in found])
        kept = self._ids[rows] != HOLE
        return Postings(rows[kept], frequency[kept])

    def _compact_if_due(self) -> None:
        """Fold everything into a new base, without holes, when holes or additions have become many."""
        height = len(self._ids)
        if 3 * (height - self._live) > height or len(self._added) > self._base.height + ADDITIONS:
            self._compact()

    def _compact(self) -> None:
        before, order = self._base, self._order
        kept = self._ids != HOLE
        # The number of kept rows before each row is its new number; rows keep their order, so postings stay sorted.
        new_row = np.cumsum(kept, dtype=np.int32) - 1
        numbering: defaultdict[str, int] = defaultdict(count(len(before.terms)).__next__, zip(before.terms, count()))
        of_late = [
            np.array([numbering[term] for term in late.codes], np.int64)[late.code_of_each()] for late in self._late
        ]
        codes = np.concatenate([np.repeat(np.arange(len(before.terms)), np.diff(before.starts)), *of_late])
        rows = np.concatenate([before.every.rows, *(late.every.rows for late in self._late)])
        frequency = np.concatenate([before.every.frequency, *(late.every.frequency for late in self._late)])
        stayed = kept[rows]
        codes, rows, frequency = codes[stayed], rows[stayed], frequency[stayed]
        # The rows of the base come first: sorted by term in a stable way, they stay before those that were added.
        by_term = np.argsort(codes, kind="stable")
        held, codes = np.unique(codes[by_term], return_inverse=True)
        names = list(numbering)
        self._base = _Base.of(
            {names[code]: number for number, code in enumerate(held.tolist())},
            self._live,
            codes,
            new_row[rows[by_term]],
            frequency[by_term],
        )
        if order is not None:
            number = np.full(len(names), HOLE, np.int32)
            number[held] = np.arange(len(held))
            words = order.codes()[np.repeat(kept[: before.height], order.sizes)]
            added, _ = flattened(self._added.values(), numbering)
            all_codes = number[np.concatenate([words, added])]
            self._order = WordOrder(all_codes, self._lengths[kept].astype(np.int64), len(held))
        self._unchanged()
        self._ids, self._lengths, self._rows = self._ids[kept], self._lengths[kept], None


def among(ascending: Rows, rows: Rows) -> NDArray[np.bool_]:
    """Which of a few rows are among these, by a binary search for each."""
    if not len(ascending):
        return np.zeros(len(rows), np.bool_)
    # the last place for a row beyond them all
    at = np.minimum(ascending.searchsorted(rows), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[at] == rows
    return found


def table_of_rows(ids: Ids) -> Rows:
    """The row of every id from 0 to above the largest of these, `HOLE` for one that has none.

    Such a table makes it one gather to find rows; ids are dense, for memories and chunks share one sequence.
    """
    table = np.full(int(ids.max(initial=0)) + 2, HOLE, np.int32)
    table[ids] = np.arange(len(ids))
    table[-1] = HOLE  # holes among the ids have written here, and larger ids than any stored read it
    return table
