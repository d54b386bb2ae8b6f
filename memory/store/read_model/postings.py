"""An inverted index that documents join and leave one at a time (feature C3).

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

from speckit_memory.memory.store.read_model.word_order import WordOrder
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

    codes: dict[str, int]
    names: list[str]
    starts: list[int]
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
            codes=codes,
            names=list(codes),
            starts=np.searchsorted(code, np.arange(len(codes) + 1)).tolist(),
            every=every,
            height=height,
            row_starts=np.searchsorted(rows[by_row], np.arange(height + 1)),
            row_codes=code[by_row].astype(np.int32),
        )

    def postings(self, term: str) -> Postings:
        """The postings of a term, copied."""
        code = self.codes.get(term)
        if code is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        start, end = self.starts[code], self.starts[code + 1]
        return Postings(self.every.rows[start:end].copy(), self.every.frequency[start:end].copy())

    def holders(self, term: str) -> int:
        """How many rows hold a term."""
        code = self.codes.get(term)
        return 0 if code is None else self.starts[code + 1] - self.starts[code]

    def terms_of(self, row: int) -> list[str]:
        """The distinct terms of a row."""
        return [self.names[code] for code in self.row_codes[self.row_starts[row] : self.row_starts[row + 1]]]


class _Change(NamedTuple):
    """A change of a term's postings that no query has asked for yet, on top of what was there before.

    `before` is None when the base holds the rest. `row` is `HOLE` when an entry that held the term was removed.
    """

    before: Postings | _Change | None
    row: int
    frequency: int


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
        # A table over all ids makes this one gather; ids are dense, for memories and chunks share one sequence.
        if table is None:
            table = np.full(int(self._ids.max(initial=0)) + 2, HOLE, np.int32)
            table[self._ids] = np.arange(len(self._ids))
            table[-1] = HOLE  # holes among the ids have written here, and larger ids than any stored read it
            self._rows = table
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

    def terms(self) -> Iterator[str]:
        """The terms that entries hold, some of them twice, and perhaps some that only removed entries held."""
        return chain(self._base.codes, self._lists)

    def adjacent(self, first: str, second: str) -> Rows:
        """The rows in which the second term stands right after the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if self._order is None:
            raise ValueError("the index does not know the order of its words")
        codes = self._base.codes
        found = np.empty(0, np.int32)
        if first in codes and second in codes:
            found = self._order.adjacent(codes[first], codes[second])
            found = found[self._ids[found] != HOLE]
        if not self._added:
            return found
        height = self._base.height
        # Rows added since the build are few: their tokens are kept and simply read.
        both = np.intersect1d(self.postings(first).rows, self.postings(second).rows, assume_unique=True)
        later = [row for row in both[both >= height].tolist() if (first, second) in pairwise(self._added[row])]
        return np.append(found, np.array(later, np.int32))

    def add(self, id_: int, tokens: Sequence[str]) -> None:
        """Add an entry. Raises ValueError when the id is there already, and TypeError once the index was published."""
        self._require_unpublished()
        if self._row(id_) is not None:
            raise ValueError(f"entry {id_} is in the index already")
        row = len(self._ids)
        lists = self._lists
        frequencies = Counter(tokens)
        for term, frequency in frequencies.items():
            lists[term] = _Change(lists.get(term), row, frequency)
        self._added[row] = tuple(tokens)
        self._ids = np.append(self._ids, id_)
        self._rows = None
        self._lengths = np.append(self._lengths, np.float32(len(tokens)))
        self._live += 1
        self._compact_if_due()

    def remove(self, id_: int) -> None:
        """Remove an entry; an unknown id is no error. Raises TypeError once the index was published."""
        self._require_unpublished()
        row = self._row(id_)
        if row is None:
            return
        lists = self._lists
        added = self._added.pop(row, None)
        for term in self._base.terms_of(row) if added is None else dict.fromkeys(added):
            lists[term] = _Change(lists.get(term), HOLE, 0)
        self._live -= 1
        self._ids, self._lengths = self._ids.copy(), self._lengths.copy()
        self._ids[row] = HOLE
        self._rows = None
        self._lengths[row] = 0
        self._compact_if_due()

    def _require_unpublished(self) -> None:
        if self._published:
            raise TypeError("an index that searches use does not change; take a copy")

    def _row(self, id_: int) -> int | None:
        found = np.flatnonzero(self._ids == id_)
        return int(found[0]) if len(found) and id_ != HOLE else None

    def _merged(self, term: str, change: Postings | _Change | None) -> Postings:
        rows: list[int] = []
        frequency: list[int] = []
        # The chain runs from the newest change to the oldest; postings are ordered by row, so it is turned round.
        while isinstance(change, _Change):
            if change.row != HOLE:
                rows.append(change.row)
                frequency.append(change.frequency)
            change = change.before
        before = self._base.postings(term) if change is None else change
        all_rows = np.concatenate([before.rows, np.array(rows[::-1], np.int32)])
        all_frequencies = np.concatenate([before.frequency, np.array(frequency[::-1], np.float32)])
        # A removal only marks the term; which rows are gone is read off the ids, whichever change came first.
        kept = self._ids[all_rows] != HOLE
        return Postings(all_rows[kept], all_frequencies[kept])

    def _compact_if_due(self) -> None:
        """Fold everything into a new base, without holes, when holes or additions have become many."""
        height = len(self._ids)
        if 3 * (height - self._live) <= height and len(self._added) <= self._base.height + ADDITIONS:
            return
        found = ((term, self.postings(term)) for term in self._base.codes | self._lists)
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
            number = np.array([self._base.codes.get(term, HOLE) for term in before.names], np.int32)
            stayed = np.repeat(kept[: before.height], order.sizes)
            added = [self._base.codes[term] for tokens in self._added.values() for term in tokens]
            codes = np.append(number[order.codes()[stayed]], np.array(added, np.int32))
            self._order = WordOrder(codes, self._lengths[kept].astype(np.int64), len(held))
        self._lists = {}
        self._added = {}
        self._ids, self._lengths, self._rows = self._ids[kept], self._lengths[kept], None
