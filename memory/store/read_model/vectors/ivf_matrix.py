"""The vectors of a store beyond memory: the exact matrix, and lists of like rows that tell which of them to look at."""

from __future__ import annotations

import threading

import numpy as np

from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.vectors.ivf_lists import LikeRows
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix, nothing
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

LISTS = "vector.lists"
"""The name of the array in a segment."""

FETCHED = 8
"""So many rows are looked at for each result that is wanted: a memory may have several of the nearest."""
LEAST_FETCHED = 512
"""Rows that are looked at for any query: fewer cost no less. Of 411,148 rows, at most 162 come so near to the fiftieth
that eight bits could not tell which is nearer (docs/decisions/0055-like-rows-beyond-memory.md)."""
MOST_FETCHED = 16_384
"""Who wants more than so many rows wants most of them, and all are compared."""
NARROW_SHARE = 0.9
"""A filter that admits less than this share of the memories is answered exactly: its nearest may lie in any list."""


class _Answered(threading.local):
    """How many questions of one thread were answered by way of lists."""

    count = 0


_answered = _Answered()


def answered_by_lists() -> int:
    """How many questions of this thread were answered by way of lists so far. A search runs in one thread."""
    return _answered.count


class ListedMatrix:
    """A `VectorMatrix`, the first rows of which lie in lists. Immutable, as that is.

    Which rows are compared is approximate: those of the lists that are nearest to the query. Everything else is exact:
    what is admitted, similarities, their order, rows that changed since the lists were written, and removed ones.
    """

    __slots__ = ("_exact", "_lists")

    def __init__(self, exact: VectorMatrix, lists: LikeRows) -> None:
        """Take the matrix and the lists of its first `lists.size` rows."""
        self._exact = exact
        self._lists = lists

    @classmethod
    def of_segment(cls, segment: Container, exact: VectorMatrix) -> ListedMatrix:
        """The matrix of a file that has lists."""
        return cls(exact, LikeRows(segment.array(LISTS), exact.size))

    @property
    def failure(self) -> str:
        """Why every question is answered exactly, "" when the lists are of use."""
        return self._lists.failure

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when there is none."""
        return self._exact.dimensions

    @property
    def count(self) -> int:
        """Number of vectors."""
        return self._exact.count

    def replaced(self, memories: Ids, chunks: Ids, parents: Ids, vectors: Vectors) -> VectorMatrix | ListedMatrix:
        """See `VectorMatrix.replaced`. Without lists when the rows had to be numbered anew."""
        later = self._exact.replaced(memories, chunks, parents, vectors)
        return ListedMatrix(later, self._lists) if later.size >= self._exact.size else later

    def vectors(self, ids: Ids) -> Vectors:
        """See `VectorMatrix.vectors`."""
        return self._exact.vectors(ids)

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """See `VectorMatrix.nearest`; of the rows in lists, those in the nearest lists are looked at.

        Exact where a filter admits few memories, where many results are wanted, and where the lists run dry.
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
            if len(found[0]) == limit and (last := float(found[1][-1])) > rest:
                _answered.count += 1
                since = self._exact.reaching(direction, last, self._lists.size)
                if len(since):
                    found = self._exact.ranked(direction, np.append(rows, since), limit, scope, level)
                return found
            if len(rows) < count:
                break
            count *= 4
        return self._exact.nearest(query, limit, scope, level)

    def _is_narrow(self, scope: Restriction) -> bool:
        return not scope.complete and scope.size < NARROW_SHARE * self._exact.memory_count
