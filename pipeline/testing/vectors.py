"""The vectors of the fake store: every distinct word is one dimension, so that cosines can be computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column, Ids, Level, Passages, Scope, Unavailable, Vectors
from speckit_memory.pipeline.testing.memories import MemoryTable, words


class FakeVectors:
    """Implements `ports.VectorSpace`. A query of unknown words has the zero vector.

    `unavailable` is the reason why there is no model, "" if there is one.
    """

    static = True
    """Whether the vectors count as those of a static model; tests may change it."""

    def __init__(self, table: MemoryTable, unavailable: str) -> None:
        self._table, self._unavailable = table, unavailable
        vocabulary = sorted({w for m in table.memories.values() for chunk in m.chunks for w in words(chunk)})
        self.axis = {word: axis for axis, word in enumerate(vocabulary)}

    @property
    def dimensions(self) -> int:
        """The number of distinct words."""
        return len(self.axis)

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query."""
        return Unavailable(self._unavailable) if self._unavailable else self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector: Vectors = np.zeros(self.dimensions, np.float32)
        for word in words(text):
            if word in self.axis:
                vector[self.axis[word]] += 1.0
        norm = np.linalg.norm(vector)
        return (vector / norm).astype(np.float32) if norm else vector

    def nearest(self, query: Vectors, limit: int, scope: Scope, level: Level) -> tuple[Ids, Column, Ids]:
        """The nearest memories or chunks, by exact cosines.

        Args:
            query: Unit vector, shape (dimensions,).
            limit: Maximum number of results.
            scope: The memories that the filter admits.
            level: memory or chunk.
        """
        best: dict[int, tuple[float, int]] = {}
        for memory in self._table.memories.values():
            if not scope.admits(np.array([memory.id]))[0]:
                continue
            for chunk, text in zip(memory.chunk_ids, memory.chunks, strict=True):
                similarity = round(float(self._vector(text).astype(np.float64) @ query.astype(np.float64)), 7)
                key = chunk if level == "chunk" else memory.id
                if key not in best or similarity > best[key][0]:
                    best[key] = (similarity, chunk)
        rows = sorted(((-s, i, c) for i, (s, c) in best.items()))[:limit]
        return (
            np.array([i for _, i, _ in rows], np.int64),
            np.array([-s for s, _, _ in rows], np.float64),
            np.array([c for _, _, c in rows], np.int64),
        )

    def vectors(self, ids: Ids) -> Vectors:
        """The vector of each id."""
        return np.stack([self._of(int(i)) for i in ids]) if len(ids) else np.empty((0, self.dimensions), np.float32)

    def _of(self, id_: int) -> Vectors:
        memory = self._table.memories[self._table.parent[id_]]
        if id_ in memory.chunk_ids:
            return self._vector(memory.chunks[memory.chunk_ids.index(id_)])
        mean: Vectors = np.sum([self._vector(text) for text in memory.chunks], axis=0)
        norm = np.linalg.norm(mean)
        return (mean / norm).astype(np.float32) if norm else mean


class FakeTokens:
    """Implements `ports.TokenSpace`.

    A token is the dimension of a word; its weight is log(passages / passages with the word).
    """

    def __init__(self, table: MemoryTable, vectors: FakeVectors, passages: Passages) -> None:
        self._table, self._vectors, self._passages = table, vectors, passages

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of words of each text."""
        return [len(words(text)) for text in texts]

    def of_text(self, text: str) -> Ids:
        """The tokens of a query."""
        axes = self._vectors.axis
        return np.array(sorted({axes[word] for word in words(text) if word in axes}), np.int64)

    def of_passages(self, ids: Ids) -> list[Ids]:
        """The tokens of each text."""
        texts = self._passages.passages([int(i) for i in ids])
        return [self.of_text(passage.text) for passage in texts]

    def vectors(self, tokens: Ids) -> Vectors:
        """The unit vector of each token."""
        return np.eye(self._vectors.dimensions, dtype=np.float32)[tokens]

    def weights(self, tokens: Ids) -> Column:
        """The inverse document frequency of each token."""
        passages = [set(words(chunk)) for m in self._table.memories.values() for chunk in m.chunks]
        names = sorted(self._vectors.axis)
        return np.array([np.log(len(passages) / sum(names[t] in p for p in passages)) for t in tokens], np.float64)


class FakeRelevance:
    """Implements `ports.RelevanceModel` by a table of texts; None means no model."""

    def __init__(self, scores: dict[str, float] | None) -> None:
        self._scores = scores

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """The score of each text in the table, NaN for others."""
        if self._scores is None:
            return Unavailable("no cross-encoder is configured")
        return np.array([self._scores.get(text, np.nan) for text in texts], np.float64)


class FakeEncoder:
    """Implements `ports.EncoderModel` by a table of ids, independent of the query; None means no encoder.

    The value of a memory of several passages does not count as that of the whole memory.
    """

    def __init__(self, table: MemoryTable, cosines: dict[int, float] | None) -> None:
        self._table, self._cosines = table, cosines

    @property
    def named(self) -> bool:
        """Whether there is a table."""
        return self._cosines is not None

    def closeness(self, query: str, ids: Ids) -> tuple[Column, NDArray[np.bool_]] | Unavailable:
        """The cosine of each id in the table, NaN for others."""
        if self._cosines is None:
            return Unavailable("no sentence encoder is configured")
        cosines = np.array([self._cosines.get(int(id_), np.nan) for id_ in ids], np.float64)
        memories = (self._table.memories[self._table.parent[int(id_)]] for id_ in ids)
        return cosines, np.array([len(memory.chunk_ids) == 1 for memory in memories], np.bool_)
