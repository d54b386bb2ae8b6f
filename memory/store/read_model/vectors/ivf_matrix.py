"""The vectors of a store beyond memory: the exact matrix, and inverted lists that select which rows to compare."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

import numpy as np

from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.vectors.ivf_lists import InvertedLists
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix, nothing
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

LISTS = "vector.lists"
"""Name of the array in a segment."""

FETCHED = 8
"""Rows fetched per requested result: several of the nearest may belong to the same memory."""
LEAST_FETCHED = 512
"""Rows fetched for any query: fewer are no cheaper. Of 411,148 rows, at most 162 came so near to the fiftieth that
eight bits could not tell which is nearer (docs/decisions/0055-like-rows-beyond-memory.md)."""
MOST_FETCHED = 16_384
"""A query that needs more rows than this is compared with all rows."""
NARROW_SHARE = 0.9
"""A filter that admits less than this share of the memories is answered exactly: its nearest may be in any list."""


ApproximateIndex = Literal["lists", "hnsw"]
"""The inverted lists of a segment, and the graph that PostgreSQL keeps (`memory.store.postgres.hnsw`)."""


class _Answered(threading.local):
    """Number of queries of one thread that each approximate index answered."""

    def __init__(self) -> None:
        self.by: Counter[ApproximateIndex] = Counter()


_answered = _Answered()


def answered_by(index: ApproximateIndex) -> int:
    """Number of queries of this thread that an approximate index has answered. A search runs in one thread."""
    return _answered.by[index]


def count_answer(index: ApproximateIndex) -> None:
    """Counts a query of this thread that an approximate index answered."""
    _answered.by[index] += 1


class ListedMatrix:
    """A `VectorMatrix` whose first rows are in inverted lists. Immutable as well.

    Only the choice of rows to compare is approximate: those of the lists nearest to the query. Everything else is
    exact: the filter, similarities, their order, and rows changed or removed since the lists were written.
    """

    __slots__ = ("_exact", "_lists")

    def __init__(self, exact: VectorMatrix, lists: InvertedLists) -> None:
        """`lists` covers the first `lists.size` rows of the matrix."""
        self._exact = exact
        self._lists = lists

    @classmethod
    def of_segment(cls, segment: Container, exact: VectorMatrix) -> ListedMatrix:
        """The matrix of a segment file that has lists."""
        return cls(exact, InvertedLists(segment.array(LISTS), exact.size))

    @property
    def failure(self) -> str:
        """Why every query is answered exactly; "" when the lists can be used."""
        return self._lists.failure

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when there are no vectors."""
        return self._exact.dimensions

    @property
    def count(self) -> int:
        """Number of vectors."""
        return self._exact.count

    def replaced(self, memories: Ids, chunks: Ids, parents: Ids, vectors: Vectors) -> ListedMatrix:
        """A copy without the rows of these memories and with new rows.

        Args:
            memories: Ids of the memories whose rows are removed.
            chunks: Ids of the chunks of the new rows.
            parents: Memory id of each chunk.
            vectors: Unit rows, shape (n, dimensions).
        """
        return ListedMatrix(self._exact.replaced(memories, chunks, parents, vectors), self._lists)

    def vectors(self, ids: Ids) -> Vectors:
        """See `VectorMatrix.vectors`."""
        return self._exact.vectors(ids)

    def nearest_chunks(self, queries: Vectors, limit: int) -> list[tuple[Ids, Column]]:
        """See `VectorMatrix.nearest_chunks`, which reads no lists."""
        return self._exact.nearest_chunks(queries, limit)

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """The nearest rows; of those in lists, only the lists nearest to the query are read.

        Exact when a filter admits few memories, when many results are requested and when the lists run out of rows.

        Args:
            query: Shape (dimensions,), of any length.
            limit: Number of results; none for 0 or less.
            scope: The memories that are admitted.
            level: "memory" or "chunk".

        Returns:
            Ids, cosines and best chunks, as from `VectorMatrix.nearest`.
        """
        if FETCHED * limit > MOST_FETCHED or self._is_narrow(scope) or self._lists.failure:
            return self._exact.nearest(query, limit, scope, level)
        direction = self._exact.direction(query) if limit > 0 else None
        if direction is None:
            return nothing()
        count = max(FETCHED * limit, LEAST_FETCHED)
        while count <= MOST_FETCHED:
            rows, rest = self._lists.near(direction, count)
            found = self._exact.ranked(direction, rows, limit, scope, level)
            # `rest` bounds what the lists did not return: if the last result beats it, fetching more changes nothing.
            if len(found[0]) == limit and (last := float(found[1][-1])) > rest:
                count_answer("lists")
                # Rows added since the lists were written are in no list: compare those that could reach the result.
                since = self._exact.reaching(direction, last, self._lists.size)
                if len(since):
                    found = self._exact.ranked(direction, np.append(rows, since), limit, scope, level)
                return found
            if len(rows) < count:
                break
            # The last result may still be beaten by a row that was not fetched: fetch more.
            count *= 4
        return self._exact.nearest(query, limit, scope, level)

    def _is_narrow(self, scope: Restriction) -> bool:
        return not scope.complete and scope.size < NARROW_SHARE * self._exact.memory_count
