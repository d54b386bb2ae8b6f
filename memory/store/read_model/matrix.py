"""The vectors of all chunks in one matrix, and the exact nearest-neighbour search over it (feature C1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.read_model.scope import Restriction
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

HOLE = -1
"""Stands for chunk and memory of a row that was removed."""

DECIMALS = 7
"""Similarities are rounded to this, so that equal ones compare equal whatever order their sums were made in."""

GATHERED_SHARE = 0.25
"""Below this share of admitted rows, copying them out is faster than comparing all rows."""

_EXCLUDED = np.float32(-3)
_LOWEST = -2.0
"""Between the mark of an excluded row and the smallest cosine."""


class _Room:
    """Rows with spare room below, and how many of them belong to some matrix."""

    __slots__ = ("rows", "taken")

    def __init__(self, rows: Vectors, taken: int) -> None:
        self.rows = rows
        self.taken = taken


def _cut(leaders: Vectors, owners: Ids, limit: int, scope: Restriction) -> float:
    """A similarity that at least `limit` admitted leaders reach, if there are so many; holes are not admitted."""
    # Most are admitted as a rule, so that twice as many as wanted hold enough of them.
    for size in (2 * limit, len(leaders)):
        best = np.argpartition(leaders, -size)[-size:] if size < len(leaders) else np.arange(len(leaders))
        reached = leaders[best[scope.admits(owners[best])]]
        if len(reached) >= limit:
            return float(np.partition(reached, -limit)[-limit])
    return float(_EXCLUDED)


class VectorMatrix:
    """Unit vectors of chunks, each with its memory. Immutable; `replaced` makes the next state and shares the rows.

    Answers do not depend on the order of arrival, nor on how a BLAS adds up: a product in single precision only
    selects, with a margin above its largest error; the selected rows are computed again in double precision.
    """

    __slots__ = (
        "_by_chunk", "_by_memory", "_chunks", "_count", "_memories", "_ordered_chunks", "_ordered_parents", "_parents",
        "_room", "_slots",
    )  # fmt: skip

    def __init__(self, chunks: Ids, parents: Ids, vectors: Vectors) -> None:
        """Take one vector of length one per chunk, and the memory of each chunk. Chunk ids are distinct."""
        self._take(_Room(np.ascontiguousarray(vectors, np.float32), len(chunks)), chunks, parents)

    def replaced(self, memories: Ids, chunks: Ids, parents: Ids, vectors: Vectors) -> VectorMatrix:
        """The matrix without the rows of these memories, and with these rows in addition; all of one dimension."""
        gone = np.isin(self._parents, memories)
        old_chunks, old_parents = np.where(gone, HOLE, self._chunks), np.where(gone, HOLE, self._parents)
        all_chunks, all_parents = np.append(old_chunks, chunks), np.append(old_parents, parents)
        kept = all_chunks != HOLE
        # Copied without holes once they are more than a third: so memory stays bounded and copies stay rare.
        if 3 * np.count_nonzero(kept) < 2 * len(kept):
            rows = np.concatenate([self._room.rows[: len(old_chunks)], vectors])[kept]
            return VectorMatrix(all_chunks[kept], all_parents[kept], rows)
        twin = VectorMatrix.__new__(VectorMatrix)
        twin._take(self._extended(vectors), all_chunks, all_parents)
        return twin

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when there is none."""
        return self._room.rows.shape[1] if self.count else 0

    @property
    def count(self) -> int:
        """Number of vectors."""
        return self._count

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """Ids, cosine similarities in [-1, 1] and best chunks: similarity descending, then id ascending. Exact.

        At level "memory" a memory scores as its best chunk (of equal ones the smallest id). A zero query is near to
        nothing. Raises E002 when the query has another dimension than the vectors.
        """
        query = np.asarray(query)
        if limit <= 0 or not self.count or not query.any():
            return np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.int64)
        if query.shape != (self.dimensions,):
            raise SpeckitError(
                "E002", f"the query has the shape {query.shape}, the store's vectors have ({self.dimensions},)"
            )
        direction = query.astype(np.float64)
        direction /= np.linalg.norm(direction)
        rough = self._rough(direction.astype(np.float32), scope)
        # The first pass only finds a bound that enough rows reach; every row within the margin of it is computed again,
        # so that no rounding of the first pass can cost a row its place.
        leaders, owners = rough, self._parents
        if level == "memory":
            leaders, owners = np.full(len(self._memories), _EXCLUDED), self._memories
            np.maximum.at(leaders, self._slots, rough)
        cut = _cut(leaders, owners, limit, scope)
        rows = np.flatnonzero(rough >= max(cut - self._margin(), _LOWEST))
        rows = rows[scope.admits(self._parents[rows])]
        similarity = self._exact(direction, rows)
        chunks = self._chunks[rows]
        order = np.lexsort((chunks, -similarity))  # the last key sorts first: similarity, then the smaller chunk
        ids = chunks
        if level == "memory":
            ids = self._parents[rows]
            # The first of a memory in this order is its best chunk.
            _, best = np.unique(ids[order], return_index=True)
            order = order[best]
            order = order[np.lexsort((ids[order], -similarity[order]))]
        order = order[:limit]
        return ids[order], similarity[order], chunks[order]

    def vectors(self, ids: Ids) -> Vectors:
        """The vector of each chunk, the mean direction of a memory's chunks, zeros where there is none.

        Shape (n, dimensions).
        """
        if not self._count:
            return np.zeros((len(ids), self._room.rows.shape[1]), np.float32)
        ids = np.asarray(ids)
        at = np.minimum(np.searchsorted(self._ordered_chunks, ids), len(self._chunks) - 1)
        is_chunk = (self._ordered_chunks[at] == ids) & (ids != HOLE)
        found: Vectors = self._room.rows.take(self._by_chunk[at], axis=0)
        others = np.flatnonzero(~is_chunk)
        if len(others):
            found[others] = 0.0
            first = np.searchsorted(self._ordered_parents, ids[others], "left")
            sizes = np.searchsorted(self._ordered_parents, ids[others], "right") - first
            several = np.flatnonzero((sizes > 0) & (ids[others] != HOLE))
            if len(several):
                found[others[several]] = self._mean_directions(first[several], sizes[several])
        return found

    def _take(self, room: _Room, chunks: Ids, parents: Ids) -> None:
        self._room = room
        self._chunks = chunks
        self._parents = parents
        self._memories, self._slots = np.unique(parents, return_inverse=True)
        self._by_chunk = np.argsort(chunks, kind="stable")
        self._by_memory = np.lexsort((chunks, parents))
        self._ordered_chunks = chunks[self._by_chunk]
        self._ordered_parents = parents[self._by_memory]
        self._count = int(np.count_nonzero(chunks != HOLE))

    def _extended(self, vectors: Vectors) -> _Room:
        """Room that holds the rows of this matrix and then these; shared while the places behind are still free."""
        # Two matrices may share rows, but only the one that ends where the room does may write behind them.
        room, size = self._room, len(self._chunks)
        needed = size + len(vectors)
        if room.taken != size or needed > len(room.rows):
            larger = np.empty((needed + needed // 4, room.rows.shape[1]), np.float32)
            larger[:size] = room.rows[:size]
            room = _Room(larger, size)
        room.rows[size:needed] = vectors
        room.taken = needed
        return room

    def _rough(self, direction: Vectors, scope: Restriction) -> Vectors:
        """Similarities of rows in single precision; where few are admitted, the others are below every cosine."""
        rows = self._room.rows[: len(self._chunks)]
        if scope.size > GATHERED_SHARE * len(self._memories):
            return rows @ direction
        admitted = scope.admits(self._memories.copy())[self._slots]
        rough = np.full(len(admitted), _EXCLUDED)
        rough[admitted] = rows[admitted] @ direction
        return rough

    def _margin(self) -> float:
        """Twice the largest rounding error of a single-precision product of unit vectors, and of the final rounding."""
        return 2 * (self.dimensions * float(np.finfo(np.float32).eps) + 10.0**-DECIMALS)

    def _exact(self, direction: Column, rows: NDArray[np.intp]) -> Column:
        # A sum along an axis, not a product of matrices: its order of adding does not hang on how many rows there are.
        similarity: Column = (self._room.rows[rows] * direction).sum(axis=1)
        # Adding zero turns a rounded -0.0 into 0.0.
        return np.clip(similarity.round(DECIMALS), -1.0, 1.0) + 0.0

    def _mean_directions(self, first: Ids, sizes: Ids) -> Vectors:
        """Directions of the sums of consecutive stretches of `_by_memory`; zeros where a sum is zero."""
        # The places first, first+1, … of every stretch, one after the other, without a loop over stretches.
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1]) + np.repeat(first - (ends - sizes), sizes)
        rows = self._room.rows[self._by_memory[places]].astype(np.float64)
        sums = np.add.reduceat(rows, ends - sizes, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        directions: Column = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
        return directions.astype(np.float32)
