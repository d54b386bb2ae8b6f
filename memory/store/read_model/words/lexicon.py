"""The words of a snapshot: looked up in the file first, and indexed in memory once many queries come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from collections.abc import Set as AbstractSet
from itertools import chain
from types import MappingProxyType

import apsw

from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.background_builder import BackgroundBuilder
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.words import stored_tokens
from speckit_memory.memory.store.read_model.words.fts_index import FileIndex, FileWords
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.pipeline.arithmetic.bags import BagParameters, Part, WordBags
from speckit_memory.pipeline.ports import FIELDS, Field, Ids, Level
from speckit_memory.pipeline.process.clock import opening


class Vocabulary(Set[str]):
    """The terms of some indexes, perhaps with some that only removed entries contained."""

    __slots__ = ("__weakref__", "_indexes", "_words")

    def __init__(self, indexes: Sequence[PostingsIndex]) -> None:
        self._indexes = indexes
        self._words: frozenset[str] | None = None

    def __contains__(self, term: object) -> bool:
        """Whether an index has the term; for a few terms this is cheaper than building the set."""
        return isinstance(term, str) and any(index.knows(term) for index in self._indexes)

    def __iter__(self) -> Iterator[str]:
        """Each distinct term once."""
        return iter(self._all())

    def __len__(self) -> int:
        """Number of distinct terms."""
        return len(self._all())

    def _all(self) -> frozenset[str]:
        if self._words is None:
            self._words = frozenset[str]().union(*(index.terms() for index in self._indexes))
        return self._words


Analyse = Callable[[str], tuple[str, ...]]

_PARTS: dict[tuple[str, str], Part] = {(field, "memory"): (field, "memory") for field in FIELDS}
_PARTS["body", "chunk"] = ("body", "chunk")
_ORDERED: frozenset[Part] = frozenset({("body", "chunk"), ("title", "memory")})
"""Indexes that record word order. In a whole body, the last word of a passage would be adjacent to the next one's
first."""
MOST_BAGS = 12
"""Bag settings kept, the most recently used ones; a pipeline usually has two, at most seven."""
MOST_BUILT = 20_000_000
"""Above this many tokens (about 2 GB of indexes), indexes are not built automatically."""
PLACES_PER_INDEX = 4
"""Cost of reading and arranging one word position, in units of indexing one token."""
LEAST_READ = 50_000
"""Below this many positions (a tenth of a second of work), a background build does not pay."""
BLOCK = 200
"""Memories whose tokens the background build reads at a time."""


class SnapshotLexicon:
    """The analysed words of one state of the store. Implements `pipeline.ports.Lexicon`.

    No search waits for an index: until there is one, the file gives the same answer, bit for bit. Once the positions
    read from the file have cost about as much as indexing would, the indexes are built in the background
    (docs/decisions/0050-words-from-the-file.md).
    """

    __slots__ = (
        "_analyse",
        "_bags",
        "_beside",
        "_columns",
        "_file",
        "_file_read",
        "_indexes",
        "_keeping",
        "_loading",
        "_moment",
        "_places_read",
        "_words",
    )

    def __init__(
        self,
        moment: ReadPoint,
        columns: Columns,
        analyse: Analyse,
        beside: BackgroundBuilder,
        indexes: Mapping[Part, PostingsIndex] | None = None,
    ) -> None:
        """`indexes` are those that are already built."""
        self._analyse = analyse
        self._moment = moment
        self._columns = columns
        self._beside = beside
        built: dict[Part, PostingsIndex | FileIndex] = {
            part: index.published() for part, index in (indexes or {}).items()
        }
        self._indexes: Mapping[Part, PostingsIndex | FileIndex] = MappingProxyType(built)
        self._file: FileWords | None = None
        self._file_read = False
        # Of this and earlier states. A lost update between threads only makes the file answer a little longer.
        self._places_read = 0
        self._words: AbstractSet[str] | None = None
        # Order of locks: `_loading` before `_keeping`. `_loading` is held while an index is opened, `_keeping` only
        # to read or change `_bags`.
        self._loading = threading.Lock()
        self._bags: dict[BagParameters, WordBags] = {}
        self._keeping = threading.Lock()

    @classmethod
    def of_segment(
        cls, segment: Container, moment: ReadPoint, columns: Columns, analyse: Analyse, beside: BackgroundBuilder
    ) -> SnapshotLexicon:
        """The lexicon whose indexes are in a segment file.

        Args:
            segment: The mapped segment.
            moment: The state that the segment holds.
            columns: The memories and chunks of this state.
            analyse: Cuts a query into tokens as the stored texts were cut.
            beside: Runs background builds.
        """
        indexes = {part: PostingsIndex.of_segment(segment, *part) for part in _PARTS.values()}
        return cls(moment, columns, analyse, beside, indexes)

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query in order, from the analyser that produced the index."""
        return self._analyse(text)

    def index(self, field: Field, level: Level = "memory") -> PostingsIndex | FileIndex:
        """The inverted index of a field. Level "chunk" exists for "body" only: ValueError for other fields."""
        # Read without the lock: the mapping is replaced as a whole, never changed.
        found = self._indexes.get((field, level))
        if found is not None:
            return found
        part = _PARTS.get((field, level))
        if part is None:
            raise ValueError(f"there is no index of the field {field!r} at level {level!r}")
        with opening(), self._loading:
            if part in self._indexes:
                return self._indexes[part]
            with self._moment.read() as (connection, is_of_it):
                words = self._of_file(connection) if is_of_it else None
                index = words.index(part, ordered=part in _ORDERED) if words else self._built(connection, part)
            if is_of_it:
                self._indexes = MappingProxyType({**self._indexes, part: index})
            return index

    @property
    def from_file(self) -> bool:
        """Whether the file answers because some index is not built or not requested yet."""
        return not all(isinstance(self._indexes.get(part), PostingsIndex) for part in _PARTS.values())

    def bags(
        self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory"
    ) -> WordBags:
        """The bags of words with these field weights.

        Args:
            weights: Weights of title, triggers, path and body, >= 0.
            k1: BM25 term-frequency saturation.
            b: BM25 length normalisation.
            level: "memory", or "chunk" for the passages of bodies.

        Raises:
            ValueError: The setting is invalid.
        """
        setting = BagParameters.of(weights, k1, b, level)
        with self._keeping:
            found = self._bags.pop(setting, None)
            if found is not None:
                self._bags[setting] = found
                return found
        indexes = {part: self.index(*part) for part in setting.parts}
        with self._keeping:
            # Laid out without the lock; bags of the same indexes share their arrays.
            others = list(self._bags.items())
        laid_out = WordBags(setting, indexes, self._columns, others)
        with self._keeping:
            # Cache only bags over the present indexes.
            if any(self._indexes.get(part) is not index for part, index in indexes.items()):
                return laid_out  # an index belongs to another state, or was replaced by a built one
            kept = self._bags.setdefault(setting, laid_out)
            # a hit is inserted again, so the first entry is the one used least recently
            while len(self._bags) > MOST_BAGS:
                del self._bags[next(iter(self._bags))]
        return kept

    def words(self) -> AbstractSet[str]:
        """All terms of the memories, perhaps with some that only removed memories contained."""
        if self._words is not None:
            return self._words
        built = self._in_memory()
        if built is not None:
            words: AbstractSet[str] = Vocabulary(built)
            kept = all((field, "memory") in self._indexes for field in FIELDS)
        else:
            with opening(), self._moment.read() as (connection, kept):
                words = frozenset(fulltext.words(connection))
        if kept:
            self._words = words
        return words

    def near(self, term: str, edits: int) -> AbstractSet[str]:
        """A superset of the terms in `words` within `edits` edits of a term."""
        built = self._in_memory()
        if built is None:
            return self.words()
        return frozenset(chain.from_iterable(index.near(term, edits) for index in built))

    def _in_memory(self) -> list[PostingsIndex] | None:
        """The memory-level index of each field; None where one is not in memory."""
        built = [index for field in FIELDS if isinstance(index := self.index(field), PostingsIndex)]
        return built if len(built) == len(FIELDS) else None

    def advanced(
        self, moment: ReadPoint, connection: apsw.Connection, columns: Columns, outdated: Ids, put: Ids
    ) -> SnapshotLexicon:
        """The lexicon of the state `columns`; indexes that are not in memory stay so.

        Args:
            moment: The new state.
            connection: An open transaction that sees the new state.
            columns: The memories and chunks of the new state.
            outdated: Ids of memories that were changed or deleted.
            put: Ids of memories that were added or changed.
        """
        twins = {part: index.copy() for part, index in self._indexes.items() if isinstance(index, PostingsIndex)}
        if twins:
            gone = {"memory": outdated, "chunk": self._columns.chunks_of(outdated)}
            said = stored_tokens.late(connection, put, columns)
            for part, twin in twins.items():
                # A changed memory is removed under its old contents, then added with the new ones.
                twin.remove(gone[part[1]])
                twin.add(said[part])
        later = SnapshotLexicon(moment, columns, self._analyse, self._beside, twins)
        later._places_read = self._places_read
        return later

    def _of_file(self, connection: apsw.Connection) -> FileWords | None:
        if not self._file_read:
            self._file = FileWords.of(self._moment, connection, self._columns, self._built, self._note_places)
            self._file_read = True
        return self._file

    def _built(self, connection: apsw.Connection, part: Part) -> PostingsIndex:
        entries = stored_tokens.entries(connection, part, None, self._columns)
        return PostingsIndex(entries, ordered=part in _ORDERED).published()

    def _note_places(self, count: int, tokens: int) -> None:
        """Count positions read from the file, and start a build once they are many for `tokens` tokens in all texts."""
        self._places_read += count
        if (
            self._places_read > max(tokens // 4, LEAST_READ)
            and tokens <= MOST_BUILT
            and self._beside.start(self._build)
        ):
            self._places_read = 0

    def _build(self) -> None:
        texts: dict[Part, list[stored_tokens.Text]] = {part: [] for part in _PARTS.values()}
        memories = self._columns.ids
        for start in range(0, len(memories), BLOCK):
            block = memories[start : start + BLOCK]
            for part, stored in texts.items():
                # Short reads, one part of a block each: closing the store waits for them.
                with self._beside.reading(), self._moment.read() as (connection, is_of_it):
                    if not is_of_it:
                        return
                    stored.extend(stored_tokens.texts(connection, part, block))
        built: dict[Part, PostingsIndex | FileIndex] = {}
        for part in _PARTS.values():
            entries = stored_tokens.texts_of_entries(texts.pop(part), stored_tokens.known(part, None, self._columns))
            built[part] = PostingsIndex(self._beside.sliced(entries), ordered=part in _ORDERED).published()
        # Same rows in the same order: a search may continue with what it read before.
        with self._loading, self._keeping:
            self._indexes = MappingProxyType(built)
            self._bags = {}
