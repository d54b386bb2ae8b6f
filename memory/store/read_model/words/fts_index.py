"""Inverted indexes that are not in memory: FTS5 tells where a word stands, whenever one is asked for.

The full-text table holds what was stored word by word and in order, so that the answers are those of a `TermIndex`
built from the stored tokens, rows included (docs/decisions/0050-words-from-the-file.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw
import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.read_point import Moment
from speckit_memory.memory.store.read_model.words.term_index import TermIndex, among, table_of_rows
from speckit_memory.memory.store.tables.words import fulltext, token_counts
from speckit_memory.memory.store.tables.words.token_counts import TokenCounts
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Ids, Postings
from speckit_memory.pipeline.ports.immutable import own
from speckit_memory.pipeline.process.clock import opening

Rows = NDArray[np.int32]
Places = NDArray[np.int64]
"""Where a word stands, ascending: the row of an index and the number of the token in it, `row << ROW | number`. Words
that follow one another have places that do."""

Build = Callable[[apsw.Connection, Part], TermIndex]

ROW = 32
MOST_KEPT = 2_000_000
"""So many places are kept at most, up to 32 MB: several indexes are asked for the same word, one after the other."""


class FileWords:
    """Where words stand in the memories of one state of the store."""

    __slots__ = (
        "_begins",
        "_build",
        "_columns",
        "_ends",
        "_keeping",
        "_known",
        "_moment",
        "_note",
        "_of_another_state",
        "_passage_rows",
        "_room",
        "_tokens",
        "layout",
    )

    def __init__(
        self, moment: Moment, columns: Columns, counts: TokenCounts, build: Build, note: Callable[[int, int], None]
    ) -> None:
        """Take the counts of the tokens of that state.

        `build` makes an index of what another state says; `note` is told how many places of a word were read, and how
        many tokens there are.
        """
        self._moment = moment
        self._columns = columns
        self._build = build
        self._note = note
        self._tokens = int(counts.fields.sum() + counts.of_passages.sum())
        chunks = columns.chunks
        # Ids of passages ascend with their order in the memory, but those of several memories are mixed.
        passage_rows = np.argsort(columns.parents(chunks), kind="stable")
        lengths = np.empty(len(chunks), np.int64)
        lengths[passage_rows] = counts.of_passages
        ends = np.append(0, np.cumsum(counts.of_passages))
        last = np.cumsum(counts.passages)
        self._passage_rows = passage_rows
        self._ends = ends
        self._begins = ends[last - counts.passages]
        whole = ends[last] - self._begins
        self.layout: dict[Part, tuple[Ids, Places]] = {("body", "memory"): (counts.memories, whole)}
        """The id and the length of every row of each index."""
        for field, of_field in zip(FIELDS, counts.fields, strict=False):
            self.layout[field, "memory"] = counts.memories, of_field
        self.layout["body", "chunk"] = chunks, lengths
        self._known: dict[str, dict[Part, Word]] = {}
        self._room = MOST_KEPT
        self._keeping = threading.Lock()
        self._of_another_state: dict[Part, TermIndex] = {}

    @classmethod
    def of(
        cls,
        moment: Moment,
        connection: apsw.Connection,
        columns: Columns,
        build: Build,
        note: Callable[[int, int], None],
    ) -> FileWords | None:
        """The words of the state that the connection sees; None when the file cannot tell where all of them stand."""
        counts = token_counts.load(connection)
        if counts is None or not np.array_equal(counts.memories, columns.ids):
            return None
        passages = np.bincount(columns.places(columns.chunks), minlength=columns.count)
        return cls(moment, columns, counts, build, note) if np.array_equal(passages, counts.passages) else None

    def index(self, part: Part, *, ordered: bool) -> FileIndex:
        """The inverted index of a part."""
        return FileIndex(self, part, ordered=ordered)

    def word(self, part: Part, term: str) -> Word | TermIndex:
        """The places of a word; where the thread sees another state than this one, an index of what that one says."""
        found = self._known.get(term)
        if found is not None:
            return found[part]
        with opening(), self._moment.read() as (connection, is_of_it):
            if not is_of_it:
                if part not in self._of_another_state:
                    self._of_another_state[part] = self._build(connection, part)
                return self._of_another_state[part]
            memories, fields, offsets = fulltext.places(connection, term)
        found = {part: Word(places) for part, places in self._placed(memories, fields, offsets).items()}
        self._note(len(memories), self._tokens)
        size = sum(len(word.places) for word in found.values())
        with self._keeping:
            if self._room < size:
                self._known, self._room = {}, MOST_KEPT
            if term not in self._known and size:
                self._known[term] = found
                self._room -= size
        return found[part]

    def _placed(self, memories: Ids, fields: Ids, offsets: Ids) -> dict[Part, Places]:
        rows = self._columns.places(memories).astype(np.int64)
        packed = rows << ROW | offsets
        found: dict[Part, Places] = {(field, "memory"): packed[fields == at] for at, field in enumerate(FIELDS)}
        body = fields == FIELDS.index("body")
        at = self._begins[rows[body]] + offsets[body]
        passage = np.searchsorted(self._ends, at, side="right") - 1
        found["body", "chunk"] = np.sort(self._passage_rows[passage] << ROW | (at - self._ends[passage]))
        return found


class Word:
    """The places of a word in one index, and what follows from them."""

    __slots__ = ("_postings", "places")

    def __init__(self, places: Places) -> None:
        self.places = places
        self._postings: Postings | None = None

    @property
    def postings(self) -> Postings:
        """Rows, ascending, and frequencies; not to be handed out."""
        if self._postings is None:
            rows = self.places >> ROW
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            frequency = np.diff(first, append=len(rows))
            self._postings = Postings(rows[first].astype(np.int32), frequency.astype(np.float32))
        return self._postings


class FileIndex:
    """Which entries hold a term, and how often, as the file tells. Implements `pipeline.ports.TermIndex`. Immutable."""

    __slots__ = ("_ids", "_lengths", "_ordered", "_part", "_rows", "_words")

    def __init__(self, words: FileWords, part: Part, *, ordered: bool) -> None:
        self._words = words
        self._part = part
        self._ordered = ordered
        self._ids, lengths = words.layout[part]
        self._lengths = lengths.astype(np.float32)
        self._rows: Rows | None = None

    @property
    def ids(self) -> Ids:
        """Id of each row; there are no holes."""
        return self._ids.copy()

    @property
    def lengths(self) -> NDArray[np.float32]:
        """Number of tokens of each row, repeats included."""
        return self._lengths.copy()

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self._ids)

    def rows_of(self, ids: Ids) -> Rows:
        """The row of each id, -1 for an id without an entry."""
        table = self._rows
        if table is None:
            table = self._rows = table_of_rows(self._ids)
        rows: Rows = table.take(ids, mode="clip")
        return rows

    def postings(self, term: str) -> Postings:
        """Rows (ascending) and frequencies of a term; empty when the term is unknown."""
        found = self._words.word(self._part, own(term))
        if isinstance(found, TermIndex):
            return found.postings(term)
        return Postings(found.postings.rows.copy(), found.postings.frequency.copy())

    def holders(self, term: str) -> int:
        """How many entries hold a term."""
        found = self._words.word(self._part, own(term))
        return found.holders(term) if isinstance(found, TermIndex) else len(found.postings.rows)

    def holding(self, term: str, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows hold a term."""
        found = self._words.word(self._part, own(term))
        if isinstance(found, TermIndex):
            return found.holding(term, rows)
        return among(found.postings.rows, np.array(rows, np.int32))

    def adjacent(self, first: str, second: str) -> Rows:
        """The rows in which the second term stands right after the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if not self._ordered:
            raise ValueError("the index does not know the order of its words")
        before, after = self._words.word(self._part, own(first)), self._words.word(self._part, own(second))
        for seen in (before, after):
            if isinstance(seen, TermIndex):
                return seen.adjacent(first, second)
        assert isinstance(before, Word) and isinstance(after, Word)
        both = np.intersect1d(before.places + 1, after.places, assume_unique=True)
        return distinct(both >> ROW).astype(np.int32)
