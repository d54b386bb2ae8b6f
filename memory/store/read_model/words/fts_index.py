"""Inverted indexes that are not in memory: FTS5 looks up the positions of a word on demand.

The full-text table stores the tokens in order, so the answers, row numbers included, equal those of a `PostingsIndex`
built from the stored tokens (docs/decisions/0050-words-from-the-file.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw
import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex, among, table_of_rows
from speckit_memory.memory.store.tables.words import fulltext, token_counts
from speckit_memory.memory.store.tables.words.token_counts import TokenCounts
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Ids, Postings
from speckit_memory.pipeline.process.clock import opening

Rows = NDArray[np.int32]
Places = NDArray[np.int64]
"""Positions of a word, ascending: `row << ROW | number`, the row of an index and the number of the token in it.
Adjacent words have consecutive positions."""

Build = Callable[[apsw.Connection, Part], PostingsIndex]

ROW = 32
MOST_KEPT = 2_000_000
"""Capacity of the cache in positions, up to 32 MB: several indexes look up the same word, one after the other."""


class FileWords:
    """The positions of words in the memories of one state of the store."""

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
        self, moment: ReadPoint, columns: Columns, counts: TokenCounts, build: Build, note: Callable[[int, int], None]
    ) -> None:
        """`counts` are the token counts of that state.

        `build` makes an index of the state that the connection sees, when that is another one; `note` receives the
        number of positions read for a word and the number of tokens in all texts.
        """
        self._moment = moment
        self._columns = columns
        self._build = build
        self._note = note
        self._tokens = int(counts.fields.sum() + counts.of_passages.sum())
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
        whole = ends[last] - self._begins
        self.layout: dict[Part, tuple[Ids, Places]] = {("body", "memory"): (counts.memories, whole)}
        """By index: the id and the length in tokens of every row."""
        for field, of_field in zip(FIELDS, counts.fields, strict=False):
            self.layout[field, "memory"] = counts.memories, of_field
        self.layout["body", "chunk"] = chunks, lengths
        self._known: dict[str, dict[Part, Word]] = {}
        self._room = MOST_KEPT
        self._keeping = threading.Lock()
        self._of_another_state: dict[Part, PostingsIndex] = {}

    @classmethod
    def of(
        cls,
        moment: ReadPoint,
        connection: apsw.Connection,
        columns: Columns,
        build: Build,
        note: Callable[[int, int], None],
    ) -> FileWords | None:
        """The words of the state that the connection sees.

        Args:
            moment: The state that results may be kept for.
            connection: An open transaction that sees this state.
            columns: The memories and chunks of this state.
            build: Makes an index of another state, when a thread sees that one.
            note: Receives the number of positions read for a word and the number of tokens in all texts.

        Returns:
            None when the stored token counts do not match the memories, so that positions cannot be told.
        """
        counts = token_counts.load(connection)
        if counts is None or not np.array_equal(counts.memories, columns.ids):
            return None
        passages = np.bincount(columns.places(columns.chunks), minlength=columns.count)
        return cls(moment, columns, counts, build, note) if np.array_equal(passages, counts.passages) else None

    def index(self, part: Part, *, ordered: bool) -> FileIndex:
        """The inverted index of a part."""
        return FileIndex(self, part, ordered=ordered)

    def word(self, part: Part, term: str) -> Word | PostingsIndex:
        """The positions of a word; an index of the state that this thread sees when that is another one."""
        # Without the lock: `_known` gains entries or is replaced as a whole, and a Word keeps its positions.
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
            # Evict everything when the cache is full: simple, and rare.
            if self._room < size:
                self._known, self._room = {}, MOST_KEPT
            if term not in self._known and size:
                self._known[term] = found
                self._room -= size
        return found[part]

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


class Word:
    """The positions of a word in one index, and the postings derived from them."""

    __slots__ = ("_postings", "places")

    def __init__(self, places: Places) -> None:
        self.places = places
        self._postings: Postings | None = None

    @property
    def postings(self) -> Postings:
        """Rows (ascending) and frequencies. Shared: do not hand them out."""
        if self._postings is None:
            rows = self.places >> ROW
            # first: where each new row begins; the distances between these starts are the term frequencies
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            frequency = np.diff(first, append=len(rows))
            self._postings = Postings(rows[first].astype(np.int32), frequency.astype(np.float32))
        return self._postings


class FileIndex:
    """Which entries contain a term and how often, read from the file. Implements `pipeline.ports.TermIndex`.
    Immutable."""

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
        """Row of each id, -1 for an id without an entry."""
        table = self._rows
        if table is None:
            table = self._rows = table_of_rows(self._ids)
        rows: Rows = table.take(ids, mode="clip")
        return rows

    def postings(self, term: str) -> Postings:
        """Rows (ascending) and frequencies of a term; empty when the term is unknown."""
        found = self._words.word(self._part, term)
        if isinstance(found, PostingsIndex):
            return found.postings(term)
        return Postings(found.postings.rows.copy(), found.postings.frequency.copy())

    def holders(self, term: str) -> int:
        """Number of entries that contain a term."""
        found = self._words.word(self._part, term)
        return found.holders(term) if isinstance(found, PostingsIndex) else len(found.postings.rows)

    def holding(self, term: str, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows contain a term."""
        found = self._words.word(self._part, term)
        if isinstance(found, PostingsIndex):
            return found.holding(term, rows)
        return among(found.postings.rows, np.array(rows, np.int32))

    def adjacent(self, first: str, second: str) -> Rows:
        """Rows in which the second term directly follows the first, ascending.

        Raises ValueError unless the index is ordered.
        """
        if not self._ordered:
            raise ValueError("the index does not know the order of its words")
        before, after = self._words.word(self._part, first), self._words.word(self._part, second)
        for seen in (before, after):
            if isinstance(seen, PostingsIndex):
                return seen.adjacent(first, second)
        assert isinstance(before, Word) and isinstance(after, Word)
        # Positions of different rows are never consecutive, since the row is in the high bits.
        both = np.intersect1d(before.places + 1, after.places, assume_unique=True)
        return distinct(both >> ROW).astype(np.int32)
