"""The words of the fake store: inverted indexes and full text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic.bags import BagParameters, WordBags
from speckit_memory.pipeline.ports import FIELDS, Attributes, Column, Field, Ids, Level, Postings, Scope
from speckit_memory.pipeline.testing.memories import Memory, MemoryTable, words


class FakeIndex:
    """Implements `ports.TermIndex`. `holes` are rows of removed entries."""

    def __init__(self, entries: Iterable[tuple[int, Sequence[str]]], holes: int = 0) -> None:
        entries = list(entries)
        self.tokens: list[tuple[str, ...]] = [()] * holes + [tuple(tokens) for _, tokens in entries]
        self._ids = [-1] * holes + [id_ for id_, _ in entries]
        self._live = len(entries)

    @property
    def ids(self) -> Ids:
        """The id of each row, -1 for a hole."""
        return np.array(self._ids, np.int64)

    def ids_of(self, rows: NDArray[np.integer]) -> Ids:
        """The ids of these rows."""
        found: Ids = self.ids[rows]
        return found

    @property
    def lengths(self) -> NDArray[np.float32]:
        """The number of words of each row."""
        return np.array([len(tokens) for tokens in self.tokens], np.float32)

    @property
    def count(self) -> int:
        """The number of rows without holes."""
        return self._live

    def rows_of(self, ids: Ids) -> NDArray[np.int32]:
        """The row of each id, -1 for an id without one."""
        return np.array([self._ids.index(id_) if id_ in self._ids else -1 for id_ in ids.tolist()], np.int32)

    def postings(self, term: str) -> Postings:
        """The rows that hold a word, and how often."""
        rows = [row for row, tokens in enumerate(self.tokens) if term in tokens]
        frequency = [self.tokens[row].count(term) for row in rows]
        return Postings(np.array(rows, np.int32), np.array(frequency, np.float32))

    def holders(self, term: str) -> int:
        """The number of rows that hold a word."""
        return len(self.postings(term).rows)

    def holding(self, term: str, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these rows hold a word."""
        return np.array([row >= 0 and term in self.tokens[row] for row in rows.tolist()], np.bool_)

    def adjacent(self, first: str, second: str) -> NDArray[np.int32]:
        """The rows in which the second word follows the first."""
        rows = [row for row, tokens in enumerate(self.tokens) if (first, second) in pairwise(tokens)]
        return np.array(rows, np.int32)


class FakeLexicon:
    """Implements `ports.Lexicon`."""

    def __init__(self, table: MemoryTable, attributes: Attributes, holes: int) -> None:
        self._attributes = attributes
        memories = list(table.memories.values())
        texts: dict[Field, Callable[[Memory], str]] = {
            "title": lambda m: m.title,
            "triggers": lambda m: " ".join(m.triggers),
            "path": lambda m: m.path,
            "body": lambda m: " ".join(m.chunks),
        }
        self._indexes: dict[tuple[Field, Level], FakeIndex] = {
            (name, "memory"): FakeIndex(((m.id, words(text(m))) for m in memories), holes)
            for name, text in texts.items()
        }
        chunks = ((i, words(c)) for m in memories for i, c in zip(m.chunk_ids, m.chunks, strict=True))
        self._indexes["body", "chunk"] = FakeIndex(chunks, holes)

    def analyse(self, text: str) -> tuple[str, ...]:
        """The words of a query."""
        return words(text)

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        """The token of each word, None for a word that has none or several."""
        return [tokens[0] if len(tokens := self.analyse(word)) == 1 else None for word in words]

    def prefetch(self, terms: Iterable[str]) -> None:
        """Nothing: all terms are in memory."""

    def index(self, field: Field, level: Level = "memory") -> FakeIndex:
        """The index of a field."""
        return self._indexes[field, level]

    def bags(
        self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory"
    ) -> WordBags:
        """The bags of words with these field weights.

        Args:
            weights: Weight of each field in the order of `FIELDS`.
            k1: BM25 saturation, from 0.
            b: BM25 length normalisation, 0 to 1.
            level: memory or chunk.
        """
        setting = BagParameters.of(weights, k1, b, level)
        return WordBags(setting, {part: self.index(*part) for part in setting.parts}, self._attributes)

    def words(self) -> set[str]:
        """All words of all fields."""
        return {token for index in self._indexes.values() for tokens in index.tokens for token in tokens}

    def near(self, term: str, edits: int) -> set[str]:
        """All words; the caller computes the distances."""
        return self.words()


class FakeFullText:
    """Implements `ports.FullText`. Scores are Σ weight · frequency: enough for an order that depends on the weights."""

    def __init__(self, table: MemoryTable, lexicon: FakeLexicon) -> None:
        self._table, self._lexicon = table, lexicon

    def match(self, tokens: Sequence[str], weights: Sequence[float], limit: int, scope: Scope) -> tuple[Ids, Column]:
        """The memories that hold any of the words, best first.

        Args:
            tokens: Words to look for.
            weights: Weight of each field in the order of `FIELDS`.
            limit: Maximum number of memories.
            scope: The memories that the filter admits.
        """
        scores: dict[int, float] = defaultdict(float)
        for name, weight in zip(FIELDS, weights, strict=True):
            index = self._lexicon.index(name)
            for token in dict.fromkeys(tokens):
                postings = index.postings(token)
                for row, frequency in zip(postings.rows, postings.frequency, strict=True):
                    scores[int(index.ids[row])] += weight * float(frequency)
        rows = sorted((-s, i) for i, s in scores.items() if scope.admits(np.array([i]))[0])[:limit]
        return np.array([i for _, i in rows], np.int64), np.array([-s for s, _ in rows], np.float64)

    def prefetch(self, words: Sequence[str]) -> None:
        """Nothing: all words are in memory."""

    def holding(self, phrases: Sequence[str], limit: int, scope: Scope) -> Ids:
        """The memories that hold the words of each phrase in a row, in the title or in the texts."""
        wanted = [f" {' '.join(words(phrase))} " for phrase in phrases]
        found = [
            memory.id
            for memory in self._table.memories.values()
            if any(phrase.strip() for phrase in wanted)
            and all(any(phrase in text for text in _spaced(memory)) for phrase in wanted)
            and scope.admits(np.array([memory.id]))[0]
        ]
        return np.array(sorted(found)[:limit], np.int64)


def _spaced(memory: Memory) -> list[str]:
    """The words of the title and of all texts, with blanks around them."""
    return [f" {' '.join(words(text))} " for text in (memory.title, " ".join(memory.chunks))]
