"""A store of plain Python data that implements the ports by definition, for tests of components."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

from speckit_memory.pipeline.ports import FolderDescription
from speckit_memory.pipeline.testing.conversation import FakeFolders, FakeSessions, FakeTriggers
from speckit_memory.pipeline.testing.graph import FakeGraph
from speckit_memory.pipeline.testing.lexicon import FakeFullText, FakeLexicon
from speckit_memory.pipeline.testing.memories import Edge, Memory, MemoryTable
from speckit_memory.pipeline.testing.texts import FakeAttributes, FakePassages
from speckit_memory.pipeline.testing.vectors import FakeEncoder, FakeRelevance, FakeTokens, FakeVectors


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
