"""An inverted index that documents join and leave (feature C3).

The index is a large frozen base, laid out as compressed sparse rows in both directions, and a small overlay of the
terms that changed since. A copy shares the base and every posting list, so that it costs little whatever the
vocabulary; adding to the copy or removing from it never changes what the original answers.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.terms import Terms, TermsInMemory
from speckit_memory.memory.store.read_model.word_order import WordOrder
from speckit_memory.memory.store.segments.container import Array, Container
from speckit_memory.memory.store.segments.term_table import TermTable
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

    def terms_of(self, rows: Rows) -> set[str]:
        """The distinct terms of these rows."""
        starts, ends = self.row_starts[rows], self.row_starts[rows + 1]
        codes = [self.row_codes[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return {self.terms.name(code) for code in np.unique(np.concatenate([np.empty(0, np.int32), *codes])).tolist()}


class _Change(NamedTuple):
    """A change of a term's postings that no query has asked for yet, on top of what was there before.

    `before` is None when the base holds the rest. `added` are rows, ascending, each followed by its frequency; none
    when entries that held the term were removed.
    """

    before: Postings | _Change | None
    added: Sequence[int]


class TermIndex:
    """Which entries hold a term, and how often. Implements `pipeline.ports.TermIndex`.

    Rows are numbers 0, 1, … in the order of arrival. A removed entry leaves a hole (`HOLE` in `ids`, length 0) that no
    posting mentions; when more than a third of the rows are holes, the rows are numbered anew.

    Changes are only noted, term by term. The first query for a term merges them and puts the result in their place.
    That is one idempotent assignment, so that any number of threads may query while another one takes a copy;
    `add` and `remove` belong to a copy that nobody else has seen yet: an index that was `published` refuses them.
    What is handed out is copied, for no array is safe from its holder: `np.add.at` writes into read-only ones as well.

    An index that is asked to be `ordered` knows which words follow one another.
    """

    __slots__ = ("_added", "_base", "_ids", "_lengths", "_lists", "_live", "_order", "_published", "_rows")

    def __init__(self, entries: Iterable[tuple[int, Sequence[str]]] = (), *, ordered: bool = False) -> None:
        """Build from (id, tokens) pairs with distinct ids, in one pass over the tokens."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        number = numbering.__getitem__
        flat, ids, lengths = array("q"), array("q"), array("q")
        for id_, tokens in entries:
            flat.extend(map(number, tokens))
            ids.append(id_)
            lengths.append(len(tokens))
        height = len(ids)
        sizes = np.array(lengths, np.int64)
        # One sort of (term, row) pairs packed into single numbers groups, orders and counts the postings at once.
        keys = np.array(flat, np.int64) * height + np.repeat(np.arange(height), sizes)
        pairs, frequency = np.unique(keys, return_counts=True)
        code, rows = np.divmod(pairs, max(height, 1))
        self._base = _Base.of(dict(numbering), height, code, rows.astype(np.int32), frequency.astype(np.float32))
        self._order = WordOrder(np.array(flat, np.int32), sizes, len(numbering)) if ordered else None
        self._lists: dict[str, Postings | _Change] = {}
        self._added: dict[int, tuple[str, ...]] = {}
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
        index._lists, index._added = {}, {}
        index._live = len(index._ids)
        index._published = False
        return index

    def copy(self) -> TermIndex:
        """An index that answers the same and changes independently; cheap, for the base is shared."""
        twin = TermIndex.__new__(TermIndex)
        twin._base = self._base
        twin._lists = self._lists.copy()
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
        found = self._lists.get(term)
        if found is None:
            return self._base.postings(term)
        if isinstance(found, _Change):
            found = self._lists[term] = self._merged(term, found)
        return Postings(found.rows.copy(), found.frequency.copy())

    def holders(self, term: str) -> int:
        """How many entries hold a term."""
        return len(self.postings(term).rows) if term in self._lists else self._base.holders(term)

    def knows(self, term: str) -> bool:
        """Whether the term is among `terms`."""
        return term in self._lists or self._base.terms.get(term) is not None

    def terms(self) -> Iterator[str]:
        """The terms that entries hold, some of them twice, and perhaps some that only removed entries held."""
        return chain(self._base.terms, self._lists)

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
        # Rows added since the build are few: their tokens are kept and simply read.
        both = np.intersect1d(self.postings(first).rows, self.postings(second).rows, assume_unique=True)
        later = [row for row in both[both >= height].tolist() if (first, second) in pairwise(self._added[row])]
        return np.append(found, np.array(later, np.int32))

    def add(self, entries: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add entries. Raises ValueError for an id that is in the index, and TypeError once that was published."""
        self._require_unpublished()
        lists, added = self._lists, list(entries)
        ids = np.array([id_ for id_, _ in added], np.int64)
        there = ids[self.rows_of(ids) != HOLE].tolist()
        if there or len(np.unique(ids)) < len(ids):
            raise ValueError(f"entries are in the index already: {there or ids.tolist()}")
        # One change a term, however many entries hold it: a thousand entries have hundreds of thousands of terms.
        held: defaultdict[str, list[int]] = defaultdict(list)
        for row, (_, tokens) in enumerate(added, len(self._ids)):
            for term, frequency in Counter(tokens).items():
                held[term] += row, frequency
            self._added[row] = tuple(tokens)
        for term, rows in held.items():
            lists[term] = _Change(lists.get(term), rows)
        self._ids = np.append(self._ids, ids)
        self._lengths = np.append(self._lengths, np.array([len(tokens) for _, tokens in added], np.float32))
        self._rows = None
        self._live += len(added)
        self._compact_if_due()

    def remove(self, ids: Sequence[int] | Ids) -> None:
        """Remove entries; an unknown id is no error. Raises TypeError once the index was published."""
        self._require_unpublished()
        rows = np.unique(self.rows_of(np.asarray(ids, np.int64)))
        rows = rows[rows != HOLE]
        if not len(rows):
            return
        lists = self._lists
        height = self._base.height
        terms = self._base.terms_of(rows[rows < height])
        terms.update(*(self._added.pop(row) for row in rows[rows >= height].tolist()))
        for term in terms:
            before = lists.get(term)
            # Whoever merges a change looks which rows are gone: one mark is enough.
            if not isinstance(before, _Change):
                lists[term] = _Change(before, ())
        self._live -= len(rows)
        self._ids, self._lengths = self._ids.copy(), self._lengths.copy()
        self._ids[rows] = HOLE
        self._rows = None
        self._lengths[rows] = 0
        self._compact_if_due()

    def _require_unpublished(self) -> None:
        if self._published:
            raise TypeError("an index that searches use does not change; take a copy")

    def _merged(self, term: str, change: Postings | _Change | None) -> Postings:
        changes: list[Sequence[int]] = []
        # The chain runs from the newest change to the oldest; postings are ordered by row, so it is turned round.
        while isinstance(change, _Change):
            changes.append(change.added)
            change = change.before
        before = self._base.postings(term) if change is None else change
        added = np.array(list(chain.from_iterable(reversed(changes))), np.int64)
        all_rows = np.concatenate([before.rows, added[::2].astype(np.int32)])
        all_frequencies = np.concatenate([before.frequency, added[1::2].astype(np.float32)])
        # A removal only marks the term; which rows are gone is read off the ids, whichever change came first.
        kept = self._ids[all_rows] != HOLE
        return Postings(all_rows[kept], all_frequencies[kept])

    def _compact_if_due(self) -> None:
        """Fold everything into a new base, without holes, when holes or additions have become many."""
        height = len(self._ids)
        if 3 * (height - self._live) > height or len(self._added) > self._base.height + ADDITIONS:
            self._compact()

    def _compact(self) -> None:
        found = ((term, self.postings(term)) for term in dict.fromkeys(self.terms()))
        held = {term: postings for term, postings in found if len(postings.rows)}
        kept = self._ids != HOLE
        # The number of kept rows before each row is its new number; rows keep their order, so postings stay sorted.
        new_row = np.cumsum(kept, dtype=np.int32) - 1
        before, order = self._base, self._order
        self._base = _Base.of(
            {term: code for code, term in enumerate(held)},
            self._live,
            np.repeat(np.arange(len(held)), [len(postings.rows) for postings in held.values()]),
            new_row[np.concatenate([np.empty(0, np.int32), *(postings.rows for postings in held.values())])],
            np.concatenate([np.empty(0, np.float32), *(postings.frequency for postings in held.values())]),
        )
        if order is not None:
            # What no row holds any more has no number.
            codes = self._base.terms
            number = np.array([HOLE if (code := codes.get(term)) is None else code for term in before.terms], np.int32)
            stayed = np.repeat(kept[: before.height], order.sizes)
            added = [codes.get(term) for tokens in self._added.values() for term in tokens]
            all_codes = np.append(number[order.codes()[stayed]], np.array(added, np.int32))
            self._order = WordOrder(all_codes, self._lengths[kept].astype(np.int64), len(held))
        self._lists = {}
        self._added = {}
        self._ids, self._lengths, self._rows = self._ids[kept], self._lengths[kept], None


def table_of_rows(ids: Ids) -> Rows:
    """The row of every id from 0 to above the largest of these, `HOLE` for one that has none.

    Such a table makes it one gather to find rows; ids are dense, for memories and chunks share one sequence.
    """
    table = np.full(int(ids.max(initial=0)) + 2, HOLE, np.int32)
    table[ids] = np.arange(len(ids))
    table[-1] = HOLE  # holes among the ids have written here, and larger ids than any stored read it
    return table
