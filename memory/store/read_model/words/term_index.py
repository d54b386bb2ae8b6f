"""An inverted index with insertions and deletions (feature C3).

The index is a large frozen base, stored as compressed sparse rows, plus a few small parts with later additions. Copies
share all of them, so that copying is cheap even for a large vocabulary; changing the copy never changes the answers of
the original.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.state.terms import Terms, TermsInMemory
from speckit_memory.memory.store.read_model.words.late_entries import (
    LateEntries,
    LateTexts,
    group_postings,
    with_latest,
)
from speckit_memory.memory.store.read_model.words.numbered import flatten_tokens
from speckit_memory.memory.store.read_model.words.word_order import WordOrder
from speckit_memory.memory.store.segment_files.container import Array, Container
from speckit_memory.memory.store.segment_files.row_lists import RowLists, smallest_type
from speckit_memory.memory.store.segment_files.term_table import TermTable
from speckit_memory.pipeline.ports import Ids, Postings

HOLE = -1
"""The value in `ids` of a row whose entry was removed."""

MOST_KNOWN = 250_000
"""Postings cached, 2 MB: the steps of a search ask for the same terms, and reading those of one takes microseconds."""
TERM_SIZE = 50
"""What a term counts beyond its postings: the arrays of one without any take 400 bytes."""

ADDITIONS = 1000
"""Additions beyond the size of the base after which the index is rebuilt."""

Rows = NDArray[np.int32]
Frequencies = NDArray[np.float32]
_NONE = Postings(np.empty(0, np.int32), np.empty(0, np.float32))


@dataclass(frozen=True, slots=True)
class _Base:
    """All postings at the last build, by term; `starts` is where those of each term begin in `frequency`."""

    terms: Terms
    starts: Sequence[int] | memoryview[int]
    rows: RowLists
    frequency: NDArray[np.integer[Any]]
    height: int

    @classmethod
    def of(cls, codes: dict[str, int], height: int, code: Ids, rows: Rows, frequency: Frequencies) -> _Base:
        """The base of these postings.

        Args:
            codes: The terms, numbered 0, 1, … in iteration order.
            height: Number of rows.
            code: Term number of each posting, ascending.
            rows: Row of each posting, ascending within a term.
            frequency: Occurrences of the term in the row.
        """
        # shapes: counts (terms,), starts (terms + 1,), frequency (postings,)
        counts = np.bincount(code, minlength=len(codes))
        return cls(
            terms=TermsInMemory(codes),
            starts=np.append(0, np.cumsum(counts)).tolist(),
            rows=RowLists.of_rows(rows, counts),
            frequency=frequency.astype(smallest_type(int(frequency.max(initial=0)))),
            height=height,
        )

    def postings(self, code: int) -> Postings:
        """The postings of a term by its number; new arrays."""
        start, end = self.starts[code], self.starts[code + 1]
        return Postings(self.rows.of(code, int(end - start)), self.frequency[start:end].astype(np.float32))

    def every(self) -> tuple[Ids, Postings]:
        """The term number of each posting, and all postings, by term, then by row."""
        counts = np.diff(self.starts)
        return np.repeat(np.arange(len(counts)), counts), Postings(
            self.rows.all(counts), self.frequency.astype(np.float32)
        )


class PostingsIndex:
    """Which entries contain a term and how often. Implements `pipeline.ports.TermIndex`.

    Rows are numbers 0, 1, … in order of arrival. A removed entry leaves a hole (`HOLE` in `ids`, length 0) that no
    posting mentions; once more than a third of the rows are holes, rows are renumbered.

    Additions are stored apart from the base. The first query for a term reads its postings, merges both and caches the
    result, so that every step of a search reads the same ones. That is one idempotent assignment, so any number of
    threads may query while another one takes a copy. `add` and `remove` are for a copy that no other thread has seen:
    an index that was `published` refuses them. Returned arrays are copies, since even a read-only array is not safe
    from its receiver: `np.add.at` writes to it.

    An `ordered` index also records which words follow each other.
    """

    __slots__ = (
        "_added",
        "_base",
        "_ids",
        "_known",
        "_late",
        "_lengths",
        "_live",
        "_order",
        "_published",
        "_room",
        "_rows",
    )
    _added: dict[int, str]
    _known: dict[str, Postings]
    _room: int
    _late: tuple[LateEntries, ...]

    def __init__(self, entries: Iterable[tuple[int, str]] = (), *, ordered: bool = False) -> None:
        """Build from (id, text) pairs (format: `numbered`) with distinct ids, in one pass over the tokens."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        ids = array("q")

        def texts() -> Iterator[str]:
            for id_, text in entries:
                ids.append(id_)
                yield text

        flat, sizes = flatten_tokens(texts(), numbering)
        height = len(ids)
        code, rows, frequency = group_postings(flat, np.repeat(np.arange(height), sizes), height)
        self._base = _Base.of(dict(numbering), height, code, rows, frequency)
        self._order = WordOrder.of_tokens(flat, sizes, len(numbering)) if ordered else None
        self._unchanged()
        self._ids: Ids = np.array(ids, np.int64)
        self._rows: Rows | None = None
        self._lengths: Frequencies = sizes.astype(np.float32)
        self._live = height
        self._published = False

    @classmethod
    def of_segment(cls, segment: Container, field: str, level: str) -> PostingsIndex:
        """The index of a field in a segment file; parts of it are read when a query needs them."""

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
            starts=array("starts").data,
            rows=RowLists(array("gaps"), array("gap_starts")),
            frequency=array("frequency"),
            height=len(index._ids),
        )
        index._order = None
        if f"{field}.{level}.places" in segment:
            index._order = WordOrder(*map(array, ("places", "place_starts", "first")))
        index._unchanged()
        index._live = len(index._ids)
        index._published = False
        return index

    def copy(self) -> PostingsIndex:
        """An index with the same answers that changes independently; cheap, since the base is shared."""
        twin = PostingsIndex.__new__(PostingsIndex)
        twin._base = self._base
        twin._known, twin._room = {}, MOST_KNOWN
        twin._late = self._late
        twin._added = self._added.copy()
        twin._order = self._order
        twin._ids = self._ids
        twin._rows = self._rows
        twin._lengths = self._lengths
        twin._live = self._live
        twin._published = False
        return twin

    def published(self) -> PostingsIndex:
        """This index, after which it rejects changes."""
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

    def knows(self, term: str) -> bool:
        """Whether the term is in `terms`."""
        return any(term in late.codes for late in self._late) or self._base.terms.get(term) is not None

    def terms(self) -> Iterator[str]:
        """All terms, some perhaps twice, and some perhaps that only removed entries contained."""
        return chain(self._base.terms, *(late.codes for late in self._late))

    def near(self, term: str, edits: int) -> Iterable[str]:
        """A superset of the terms in `terms` within `edits` edits of a term."""
        return chain(self._base.terms.near(term, edits), *(late.codes for late in self._late))

    def adjacent(self, first: str, second: str) -> Rows:
        """Rows in which the second term directly follows the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if self._order is None:
            raise ValueError("the index does not know the order of its words")
        before, after = self._base.terms.get(first), self._base.terms.get(second)
        found = np.empty(0, np.int32)
        if before is not None and after is not None:
            found = self._order.adjacent(
                (before, self._base_postings(first, before)), (after, self._base_postings(second, after))
            )
            if len(found):
                found = found[self._ids[found] != HOLE]
        if not self._added:
            return found
        height = self._base.height
        # Rows added since the build are few: their texts are kept and scanned.
        both = np.intersect1d(self.postings(first).rows, self.postings(second).rows, assume_unique=True)
        pair = f" {first} {second} "
        later = [row for row in both[both >= height].tolist() if pair in f"{self._added[row]} "]
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
        latest = LateEntries.of(late, first)
        self._known, self._room = {}, MOST_KNOWN
        self._late = with_latest(self._late, latest)
        # Without word order the texts are never scanned again, and an entry may have several: nothing to keep.
        added = range(first, first + size)
        self._added.update(zip(added, late.texts, strict=True) if self._order is not None else dict.fromkeys(added, ""))
        self._ids = np.append(self._ids, ids)
        lengths = np.bincount(late.entry_of_text, late.numbered.sizes, size).astype(np.float32)
        self._lengths = np.append(self._lengths, lengths)
        self._rows = None
        self._live += size
        self._compact_if_due()

    def remove(self, ids: Sequence[int] | Ids) -> None:
        """Remove entries; unknown ids are ignored. Raises TypeError once the index was published."""
        self._require_unpublished()
        rows = np.unique(self.rows_of(np.asarray(ids, np.int64)))
        rows = rows[rows != HOLE]
        if not len(rows):
            return
        for row in rows[rows >= self._base.height].tolist():
            del self._added[row]
        self._live -= len(rows)
        self._ids, self._lengths = self._ids.copy(), self._lengths.copy()
        self._ids[rows] = HOLE
        self._rows = None
        self._lengths[rows] = 0
        self._known, self._room = {}, MOST_KNOWN
        self._compact_if_due()

    def _unchanged(self) -> None:
        """Reset the record of additions: the base is complete."""
        self._late, self._added, self._known, self._room = (), {}, {}, MOST_KNOWN

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
        code = self._base.terms.get(term)
        found = _NONE if code is None else self._base.postings(code)
        if late := [late.postings(term) for late in self._late if term in late.codes]:
            rows = np.concatenate([each.rows for each in (found, *late)])
            found = Postings(rows, np.concatenate([each.frequency for each in (found, *late)]))
        if self._live == len(self._ids):
            return found
        kept = self._ids[found.rows] != HOLE
        return Postings(found.rows[kept], found.frequency[kept])

    def _base_postings(self, term: str, code: int) -> Postings:
        """The postings of a term of the base, those of removed entries included, as the word order has them."""
        unchanged = self._live == len(self._ids) and not self._late
        return self._of(term) if unchanged else self._base.postings(code)

    def _compact_if_due(self) -> None:
        """Merge everything into a new base without holes once holes or additions have become many."""
        height = len(self._ids)
        if 3 * (height - self._live) > height or len(self._added) > self._base.height + ADDITIONS:
            self._compact()

    def _compact(self) -> None:
        # Merge the base and all late parts, renumber the rows without holes, and drop unused terms.
        before, order = self._base, self._order
        kept = self._ids != HOLE
        # A row's new number is the count of kept rows before it; rows keep their order, so postings stay sorted.
        new_row = np.cumsum(kept, dtype=np.int32) - 1
        numbering: defaultdict[str, int] = defaultdict(count(len(before.terms)).__next__, zip(before.terms, count()))
        of_late = [
            np.array([numbering[term] for term in late.codes], np.int64)[late.code_of_each()] for late in self._late
        ]
        code_of_each, every = before.every()
        codes = np.concatenate([code_of_each, *of_late])
        rows = np.concatenate([every.rows, *(late.every.rows for late in self._late)])
        frequency = np.concatenate([every.frequency, *(late.every.frequency for late in self._late)])
        stayed = kept[rows]
        codes, rows, frequency = codes[stayed], rows[stayed], frequency[stayed]
        # Rows of the base come first, and the stable sort by term keeps them before the added ones.
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
            # The token sequences of kept rows: from the base by its word order, from late rows by their texts.
            words, row_of_each = order.texts(code_of_each, every)
            words = words[kept[row_of_each]]
            added, _ = flatten_tokens(self._added.values(), numbering)
            all_codes = number[np.concatenate([words, added])]
            self._order = WordOrder.of_tokens(all_codes, self._lengths[kept].astype(np.int64), len(held))
        self._unchanged()
        self._ids, self._lengths, self._rows = self._ids[kept], self._lengths[kept], None


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
