"""A store of plain Python data that implements the ports by definition, for tests of components."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from speckit_memory.pipeline.ports import AUTHORED, Column, FolderDescription, Ids
from speckit_memory.pipeline.testing.graph import FakeGraph
from speckit_memory.pipeline.testing.lexicon import FakeFullText, FakeLexicon
from speckit_memory.pipeline.testing.memories import Edge, Memory, MemoryTable, words
from speckit_memory.pipeline.testing.texts import FakeAttributes, FakePassages
from speckit_memory.pipeline.testing.vectors import FakeEncoder, FakeRelevance, FakeTokens, FakeVectors


class FakeTriggers:
    """Implements `ports.Triggers`: authored phrases weigh 1, learned ones 0.7."""

    def __init__(self, table: MemoryTable) -> None:
        self._phrases = [
            (m.id, words(phrase), weight)
            for m in table.memories.values()
            for weight, phrases in ((1.0, m.triggers), (0.7, m.learned))
            for phrase in phrases
        ]

    def exact(self, text: str) -> bool:
        """Whether a text is an authored phrase."""
        return any(phrase == words(text) and weight >= AUTHORED for _, phrase, weight in self._phrases)

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        """The phrases that occur in a text."""
        said = f" {' '.join(words(text))} "
        rows = sorted((i, w) for i, phrase, w in self._phrases if f" {' '.join(phrase)} " in said)
        return np.array([i for i, _ in rows], np.int64), np.array([w for _, w in rows], np.float64)


class FakeFolders:
    """Implements `ports.Folders`."""

    def __init__(self, descriptions: Sequence[FolderDescription]) -> None:
        self._descriptions = tuple(descriptions)

    def described(self) -> tuple[FolderDescription, ...]:
        """The descriptions given to the constructor."""
        return self._descriptions


class FakeSessions:
    """Implements `ports.Sessions`.

    `attended` maps a session to memories with their attention, `delivered` to a set of memories.
    """

    def __init__(self, attended: dict[str, dict[int, float]], delivered: dict[str, set[int]]) -> None:
        self._attended, self._delivered = attended, delivered

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """The attention of each memory."""
        return np.array([self._attended.get(session, {}).get(int(i), 0.0) for i in ids], np.float64)

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """A text of each memory that was sent."""
        sent = self._delivered.get(session, set())
        return [[f"text of {memory}"] if memory in sent else [] for memory in memories.tolist()]


class FakeStore(MemoryTable):
    """Implements `Store`. Words are runs of letters and digits, and each distinct word is one dimension of the vectors.

    `attended` maps a session to memories with their attention [0, 1], `delivered` to a set of memories. `relevance`
    maps texts to cross-encoder scores, and `closeness` ids to cosines of a sentence encoder, None without one;
    `no_embedder` is the reason why there is no model for vectors. `holes` is the number of removed rows in every
    inverted index.
    """

    def __init__(
        self,
        *memories: Memory,
        edges: Sequence[Edge] = (),
        folders: Sequence[FolderDescription] = (),
        attended: dict[str, dict[int, float]] | None = None,
        delivered: dict[str, set[int]] | None = None,
        relevance: dict[str, float] | None = None,
        closeness: dict[int, float] | None = None,
        no_embedder: str = "",
        holes: int = 0,
    ) -> None:
        super().__init__(memories)
        self.attributes = FakeAttributes(self)
        self.passages = FakePassages(self)
        self.vectors = FakeVectors(self, no_embedder)
        self.lexicon = FakeLexicon(self, self.attributes, holes)
        self.fulltext = FakeFullText(self, self.lexicon)
        self.graph = FakeGraph(edges, self.parent)
        self.triggers = FakeTriggers(self)
        self.folders = FakeFolders(folders)
        self.sessions = FakeSessions(attended or {}, delivered or {})
        self.tokens = FakeTokens(self, self.vectors, self.passages)
        self.relevance = FakeRelevance(relevance)
        self.encoder = FakeEncoder(self, closeness)

    def with_holes(self, holes: int) -> Self:
        """The same memories with rows of removed entries in every index, as in any store after a while."""
        other = copy(self)
        other.lexicon = FakeLexicon(other, other.attributes, holes)
        other.fulltext = FakeFullText(other, other.lexicon)
        return other

    def encoded(self) -> Self:
        """The same memories with vectors of a sentence encoder."""
        other = copy(self)
        other.vectors = copy(self.vectors)
        other.vectors.static = False
        return other
