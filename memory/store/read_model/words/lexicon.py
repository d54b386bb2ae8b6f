"""The words of a snapshot: indexed in a segment, or looked up in the file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from collections.abc import Set as AbstractSet
from itertools import chain
from types import MappingProxyType

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.state.models import QueryAnalyser
from speckit_memory.memory.store.read_model.words.fts_index import FileIndex, FileWords
from speckit_memory.memory.store.read_model.words.late_entries import read_late_texts
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.term_table import HashedTerms
from speckit_memory.pipeline.arithmetic.bags import BagParameters, Part, WordBags
from speckit_memory.pipeline.ports import FIELDS, Field, Ids, Level


class Vocabulary(Set[str]):
    """The terms of some indexes, perhaps with some that only removed entries contained."""

    __slots__ = ("__weakref__", "_indexes", "_words")

    def __init__(self, indexes: Sequence[PostingsIndex]) -> None:
        self._indexes = indexes
        self._words: frozenset[str] | None = None

    def __contains__(self, term: object) -> bool:
        """Whether an index has the term; for a few terms this is cheaper than building the set."""
        return isinstance(term, str) and bool(self & {term})

    def __and__(self, terms: AbstractSet[object]) -> frozenset[str]:
        """Those of these terms that an index has, looked up at once."""
        wanted = HashedTerms([term for term in terms if isinstance(term, str)])
        return frozenset(chain.from_iterable(index.known(wanted) for index in self._indexes))

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


_PARTS: tuple[Part, ...] = (*((field, "memory") for field in FIELDS), ("body", "chunk"))
_ORDERED: frozenset[Part] = frozenset({("body", "chunk"), ("title", "memory")})
"""Indexes that record word order. In a whole body, the last word of a passage would be adjacent to the next one's
first."""
MOST_BAGS = 12
"""Bag settings kept, the most recently used ones; a pipeline usually has two, at most seven."""


class SnapshotLexicon:
    """The analysed words of one state of the store. Implements `pipeline.ports.Lexicon`.

    Indexes are those of a segment with the changes since, or look up words in the file: both give the same answers,
    bit for bit.
    """

    __slots__ = ("_analyser", "_bags", "_columns", "_file", "_indexes", "_keeping", "_words")

    def __init__(
        self,
        columns: Columns,
        analyser: QueryAnalyser,
        indexes: Mapping[Part, PostingsIndex] | None = None,
        file: FileWords | None = None,
    ) -> None:
        """Take the indexes of a segment, or the words of the file.

        Args:
            columns: The memories and chunks of the state.
            analyser: Cuts a query into tokens as the stored texts were cut.
            indexes: The indexes of all parts.
            file: Answers when there are none.
        """
        self._analyser = analyser
        self._columns = columns
        self._file = file
        used: dict[Part, PostingsIndex | FileIndex] = {
            part: index.published() for part, index in (indexes or {}).items()
        }
        if file is not None:
            used = {part: FileIndex(file, part, ordered=part in _ORDERED) for part in _PARTS}
        self._indexes: Mapping[Part, PostingsIndex | FileIndex] = MappingProxyType(used)
        self._words: AbstractSet[str] | None = None
        self._bags: dict[BagParameters, WordBags] = {}
        # held only to read or change `_bags`
        self._keeping = threading.Lock()

    @classmethod
    def of_segment(cls, segment: Container, columns: Columns, analyser: QueryAnalyser) -> SnapshotLexicon:
        """The lexicon whose indexes are in a segment."""
        return cls(columns, analyser, {part: PostingsIndex(segment, *part) for part in _PARTS})

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query in order, from the analyser that produced the index."""
        return self._analyser.analyse(text)

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        """The token of each word, None for a word that has none or several."""
        return self._analyser.word_tokens(words)

    def prefetch(self, terms: Iterable[str]) -> None:
        """Reads these terms from the file at once, if that is where they are looked up."""
        if self._file is not None:
            self._file.prefetch(terms)

    def index(self, field: Field, level: Level = "memory") -> PostingsIndex | FileIndex:
        """The inverted index of a field. Level "chunk" exists for "body" only: ValueError for other fields."""
        found = self._indexes.get((field, level))
        if found is None:
            raise ValueError(f"there is no index of the field {field!r} at level {level!r}")
        return found

    @property
    def from_file(self) -> bool:
        """Whether the file answers because there is no segment."""
        return self._file is not None

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
            # Laid out without the lock; bags of the same indexes share their arrays.
            others = list(self._bags.items())
        laid_out = WordBags(setting, {part: self.index(*part) for part in setting.parts}, self._columns, others)
        with self._keeping:
            kept = self._bags.setdefault(setting, laid_out)
            # a hit is inserted again, so the first entry is the one used least recently
            while len(self._bags) > MOST_BAGS:
                del self._bags[next(iter(self._bags))]
        return kept

    def words(self) -> AbstractSet[str]:
        """All terms of the memories, perhaps with some that only removed memories contained."""
        if self._words is not None:
            return self._words
        words: AbstractSet[str]
        if self._file is None:
            words, kept = Vocabulary(self._by_memory()), True
        else:
            words, kept = self._file.terms()
        if kept:
            self._words = words
        return words

    def near(self, term: str, edits: int) -> AbstractSet[str]:
        """A superset of the terms in `words` within `edits` edits of a term."""
        if self._file is not None:
            return self.words()
        return frozenset(chain.from_iterable(index.near(term, edits) for index in self._by_memory()))

    def _by_memory(self) -> list[PostingsIndex]:
        """The memory-level index of each field, from the segment."""
        indexes = (self._indexes[field, "memory"] for field in FIELDS)
        return [index for index in indexes if isinstance(index, PostingsIndex)]

    def advanced(self, connection: Connection, columns: Columns, outdated: Ids, put: Ids) -> SnapshotLexicon:
        """The lexicon of the state `columns`, from the indexes of a segment.

        Args:
            connection: An open transaction that sees the new state.
            columns: The memories and chunks of the new state.
            outdated: Ids of memories that were changed or deleted.
            put: Ids of memories that were added or changed.
        """
        twins = {part: index.copy() for part, index in self._indexes.items() if isinstance(index, PostingsIndex)}
        gone = {"memory": outdated, "chunk": self._columns.chunks_of(outdated)}
        said = read_late_texts(connection, put, columns)
        for part, twin in twins.items():
            # A changed memory is removed under its old contents, then added with the new ones.
            twin.remove(gone[part[1]])
            twin.add(said[part])
        return SnapshotLexicon(columns, self._analyser, twins)
