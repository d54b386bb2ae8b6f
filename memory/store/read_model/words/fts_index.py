"""Inverted indexes without a segment: FTS5 looks up the positions of a word on demand.

The full-text table stores the tokens in order, so the answers, row numbers included, equal those of a `PostingsIndex`
of a segment of the same state (docs/decisions/0050-words-from-the-file.md).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.words.term_index import InvertedIndex, Rows
from speckit_memory.memory.store.tables.words import fulltext, token_counts
from speckit_memory.memory.store.tables.words.token_counts import TokenCounts
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Ids, Postings
from speckit_memory.pipeline.process.clock import opening

Places = NDArray[np.int64]
"""Positions of a word, ascending: `row << ROW | number`, the row of an index and the number of the token in it.
Adjacent words have consecutive positions."""

ROW = 32
MOST_KEPT = 2_000_000
"""Capacity of the cache in positions, up to 32 MB: several indexes look up the same word, one after the other. A word
counts as one more, also if no memory holds it."""


class _Word(NamedTuple):
    """The positions of a word in one index, and its postings."""

    places: Places
    postings: Postings

    @classmethod
    def at(cls, places: Places) -> _Word:
        rows = places >> ROW
        # first: where each new row begins; the distances between these starts are the term frequencies
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        frequency = np.diff(first, append=len(rows))
        return cls(places, Postings(rows[first].astype(np.int32), frequency.astype(np.float32)))


class FileWords:
    """The positions of words in the memories of one state of the store."""

    __slots__ = ("_begins", "_columns", "_ends", "_guard", "_kept", "_known", "_moment", "_passage_rows", "layout")

    def __init__(self, moment: ReadPoint, columns: Columns, counts: TokenCounts) -> None:
        """`counts` are the token counts of the state of `columns`, the point of reading is `moment`."""
        self._moment = moment
        self._columns = columns
        chunks = columns.chunks
        # Chunk ids ascend within a memory, but the ids of several memories may interleave.
        passage_rows = np.argsort(columns.parents(chunks), kind="stable")
        lengths = np.empty(len(chunks), np.int64)
        lengths[passage_rows] = counts.of_passages
        ends = np.append(0, np.cumsum(counts.of_passages))
        # ends[i]: where the i-th passage begins in the bodies of all memories, one after the other, counted in tokens
        # last: for each memory, the index after its last passage in `ends`
        last = np.cumsum(counts.passages)
        self._passage_rows = passage_rows
        self._ends = ends
        self._begins = ends[last - counts.passages]
        self.layout: dict[Part, tuple[Ids, Places]] = {("body", "memory"): (counts.memories, ends[last] - self._begins)}
        """By index: the id and the length in tokens of every row."""
        for field, of_field in zip(FIELDS, counts.fields, strict=False):
            self.layout[field, "memory"] = counts.memories, of_field
        self.layout["body", "chunk"] = chunks, lengths
        self._known: dict[str, dict[Part, _Word]] = {}
        self._kept = 0
        self._guard = threading.Lock()

    @classmethod
    def of(cls, moment: ReadPoint, connection: Connection, columns: Columns) -> FileWords | None:
        """The words of the state that the connection sees, which is that of `moment` and `columns`. None when the
        stored token counts do not match the memories, so that positions cannot be told."""
        counts = token_counts.load(connection)
        if counts is None or not np.array_equal(counts.memories, columns.ids):
            return None
        passages = np.bincount(columns.places(columns.chunks), minlength=columns.count)
        return cls(moment, columns, counts) if np.array_equal(passages, counts.passages) else None

    def terms(self) -> tuple[frozenset[str], bool]:
        """All words of the state that this thread sees, and whether that is the state of the memories."""
        with opening(), self._moment.read() as (connection, is_of_it):
            return frozenset(fulltext.words(connection)), is_of_it

    def prefetch(self, terms: Iterable[str]) -> None:
        """Reads the positions of these words at once, those that are not yet known."""
        if unknown := [term for term in dict.fromkeys(terms) if term not in self._known]:
            self._read(unknown)

    def word(self, part: Part, term: str) -> _Word:
        """The positions of a word. When this thread sees another state, memories changed since have none."""
        # Without the lock: `_known` gains entries or is replaced as a whole, and a word never changes.
        found = self._known.get(term)
        return (self._read([term])[term] if found is None else found)[part]

    def _read(self, terms: Sequence[str]) -> dict[str, dict[Part, _Word]]:
        found: dict[str, dict[Part, _Word]] = {}
        with opening(), self._moment.read() as (connection, is_of_it):
            for term, occurrences in fulltext.places(connection, terms).items():
                memories, fields, offsets = occurrences
                if not is_of_it:
                    kept = ~np.isin(memories, self._moment.outdated(connection, memories))
                    memories, fields, offsets = memories[kept], fields[kept], offsets[kept]
                placed = self._placed(memories, fields, offsets)
                found[term] = {part: _Word.at(places) for part, places in placed.items()}
        with self._guard:
            for term, word in found.items() if is_of_it else ():
                size = 1 + sum(len(of_part.places) for of_part in word.values())
                # Evict everything when the cache is full: simple, and rare.
                if self._kept + size > MOST_KEPT:
                    self._known, self._kept = {}, 0
                if term not in self._known:
                    self._known[term] = word
                    self._kept += size
        return found

    def _placed(self, memories: Ids, fields: Ids, offsets: Ids) -> dict[Part, Places]:
        # memories, fields, offsets: (occurrences,) int64, one element for each occurrence of the word
        rows = self._columns.places(memories).astype(np.int64)
        # position = row (high 32 bits) | token number (low 32 bits)
        packed = rows << ROW | offsets
        found: dict[Part, Places] = {(field, "memory"): packed[fields == at] for at, field in enumerate(FIELDS)}
        body = fields == FIELDS.index("body")
        # at: position among the tokens of all bodies; the passage is the last one that begins at or before it
        at = self._begins[rows[body]] + offsets[body]
        passage = np.searchsorted(self._ends, at, side="right") - 1
        found["body", "chunk"] = np.sort(self._passage_rows[passage] << ROW | (at - self._ends[passage]))
        return found


class FileIndex(InvertedIndex):
    """Which entries contain a term and how often, read from the file. Immutable; there are no holes."""

    __slots__ = ("_ordered", "_part", "_words")

    def __init__(self, words: FileWords, part: Part, *, ordered: bool) -> None:
        ids, lengths = words.layout[part]
        super().__init__(ids, lengths.astype(np.float32))
        self._words = words
        self._part = part
        self._ordered = ordered

    def adjacent(self, first: str, second: str) -> Rows:
        """Rows in which the second term directly follows the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if not self._ordered:
            raise ValueError("the index does not know the order of its words")
        before, after = (self._words.word(self._part, term).places for term in (first, second))
        # Positions of different rows are never consecutive, since the row is in the high bits.
        both = np.intersect1d(before + 1, after, assume_unique=True)
        return distinct(both >> ROW).astype(np.int32)

    def _of(self, term: str) -> Postings:
        return self._words.word(self._part, term).postings
