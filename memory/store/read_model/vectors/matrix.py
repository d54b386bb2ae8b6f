"""The vectors of all chunks in one matrix, and the exact nearest-neighbour search over it (feature C1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.vectors.growable_rows import GrowableArray
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.pipeline.arithmetic import best_of_each, distinct
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors
from speckit_memory.pipeline.process.yielding import yield_now

HOLE = -1
"""The chunk and memory id of a removed row."""

DECIMALS = 7
"""Similarities are rounded to this, so that equal ones compare equal regardless of the order of summation."""

GATHERED_SHARE = 0.25
"""Below this share of admitted rows, copying them out is faster than comparing all rows."""

BLOCK = 4096
"""Rows compared between two yields of background work: some milliseconds, in which the interpreter is free."""

_EXCLUDED = np.float32(-3)
_LOWEST = -2.0
"""Between the mark of an excluded row and the smallest cosine."""


def nothing() -> tuple[Ids, Column, Ids]:
    """An empty result; new arrays each time, since callers may modify them."""
    return np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.int64)


def _cut(leaders: Vectors, owners: Ids, limit: int, scope: Restriction) -> float:
    """A similarity that at least `limit` admitted leaders reach, if that many exist; holes are not admitted."""
    # Most rows are usually admitted, so twice the limit nearly always contains enough of them.
    for size in (2 * limit, len(leaders)):
        best = np.argpartition(leaders, -size)[-size:] if size < len(leaders) else np.arange(len(leaders))
        reached = leaders[best[scope.admits(owners[best])]]
        if len(reached) >= limit:
            return float(np.partition(reached, -limit)[-limit])
    return float(_EXCLUDED)


class VectorMatrix:
    """Unit vectors of chunks, each with its memory. Immutable; `replaced` makes the next state and shares the rows.

    Answers depend neither on the order of arrival nor on how the BLAS sums: a single-precision product only
    preselects, with a margin above its largest error; the selected rows are computed again in double precision.
    """

    __slots__ = (
        "_by_chunk",
        "_by_memory",
        "_chunks",
        "_count",
        "_memories",
        "_ordered_chunks",
        "_ordered_parents",
        "_parents",
        "_room",
        "_slots",
    )

    def __init__(self, chunks: Ids, parents: Ids, vectors: Vectors) -> None:
        """Take one unit vector per chunk, shape (n, dimensions), and the memory of each. Chunk ids are distinct."""
        self._take(GrowableArray(np.ascontiguousarray(vectors, np.float32)), chunks, parents)

    @classmethod
    def of_segment(cls, segment: Container) -> VectorMatrix:
        """The matrix backed by the mapped arrays of a segment file."""
        matrix = cls.__new__(cls)
        rows, chunks, parents = (segment.array(f"vector.{name}") for name in ("rows", "chunks", "parents"))
        matrix._room = GrowableArray(rows)
        matrix._chunks = matrix._ordered_chunks = chunks
        matrix._parents, matrix._ordered_parents = parents, segment.array("vector.ordered_parents")
        matrix._memories, matrix._slots = segment.array("vector.memories"), segment.array("vector.slots")
        matrix._by_chunk, matrix._by_memory = np.arange(len(chunks)), segment.array("vector.by_memory")
        matrix._count = len(chunks)
        return matrix

    def replaced(self, memories: Ids, chunks: Ids, parents: Ids, vectors: Vectors) -> VectorMatrix:
        """A copy without the rows of these memories and with new rows.

        Args:
            memories: Ids of the memories whose rows are removed.
            chunks: Ids of the chunks of the new rows.
            parents: Memory id of each chunk.
            vectors: Unit rows, shape (n, dimensions), of the same dimension as the present ones.
        """
        gone = np.isin(self._parents, memories)
        old_chunks, old_parents = np.where(gone, HOLE, self._chunks), np.where(gone, HOLE, self._parents)
        twin = VectorMatrix.__new__(VectorMatrix)
        room = self._room.extended(len(old_chunks), vectors)
        twin._take(room, np.append(old_chunks, chunks), np.append(old_parents, parents))
        return twin

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when there are no vectors."""
        return self._room.width if self.count else 0

    @property
    def size(self) -> int:
        """Number of rows, including removed ones. A matrix derived from another keeps its rows at their places."""
        return len(self._chunks)

    @property
    def memory_count(self) -> int:
        """Number of memories that have vectors, plus one when rows were removed."""
        return len(self._memories)

    @property
    def count(self) -> int:
        """Number of vectors."""
        return self._count

    def nearest(self, query: Vectors, limit: int, scope: Restriction, level: Level) -> tuple[Ids, Column, Ids]:
        """The rows nearest to a query by cosine: similarity descending, then id ascending. Exact.

        Args:
            query: Shape (dimensions,), of any length; nothing is near to a zero vector.
            limit: Number of results; none for 0 or less.
            scope: The memories that are admitted.
            level: "chunk", or "memory": a memory scores as its best chunk (of equal ones the smallest id).

        Returns:
            Ids (n,) int64, cosines (n,) float64 in [-1, 1], and the best chunk of each id (n,) int64.

        Raises:
            SpeckitError: E002, the query has another dimension than the vectors.
        """
        direction = self.direction(query) if limit > 0 else None
        if direction is None:
            return nothing()
        # rough: (rows,) float32; leaders, owners: one element per row, or one per memory
        rough = self._rough(direction.astype(np.float32), scope)
        # The first pass only finds a bound that enough rows reach. Every row within the margin of it is computed again,
        # so that no rounding error of the first pass can cost a row its rank.
        leaders, owners = rough, self._parents
        if level == "memory":
            leaders, owners = np.full(len(self._memories), _EXCLUDED), self._memories
            # leaders: (memories,) float32, the best similarity of each memory's chunks
            np.maximum.at(leaders, self._slots, rough)
        cut = _cut(leaders, owners, limit, scope)
        near = (rough >= max(cut - self._margin(), _LOWEST)).nonzero()[0]
        return self.ranked(direction, near, limit, scope, level)

    def nearest_chunks(self, queries: Vectors, limit: int) -> list[tuple[Ids, Column]]:
        """The chunks nearest to each of some unit vectors, in one pass over the rows that yields between blocks.

        Args:
            queries: Shape (n, dimensions), n above 0.
            limit: Number of chunks for each, above 0.

        Returns:
            For each query, chunk ids and cosines, similarity descending, then id ascending. Exact.
        """
        # best: (n, limit) float32, the largest products of each query so far; near: rows that may belong to them
        directions = np.stack([query / np.linalg.norm(query) for query in queries.astype(np.float64)])
        best = np.full((len(queries), limit), _EXCLUDED)
        near: list[list[NDArray[np.intp]]] = [[] for _ in queries]
        for first, block in self._room.blocks(self.size, BLOCK):
            yield_now()
            rough = directions.astype(np.float32) @ block.T
            rough[:, self._chunks[first : first + len(block)] == HOLE] = _EXCLUDED
            best = np.partition(np.append(best, rough, axis=1), -limit, axis=1)[:, -limit:]
            reaching = rough >= np.maximum(best.min(axis=1) - self._margin(), _LOWEST)[:, None]
            for number, rows in enumerate(reaching):
                near[number].append(first + rows.nonzero()[0])
        found = []
        for direction, places in zip(directions, near, strict=True):
            rows = np.concatenate([np.empty(0, np.intp), *places])
            similarity, chunks = self._exact(direction, rows), self._chunks[rows]
            order = np.lexsort((chunks, -similarity))[:limit]
            found.append((chunks[order], similarity[order]))
        return found

    def direction(self, query: Vectors) -> Column | None:
        """The query as a unit vector in double precision; None when nothing is near to it. Raises E002."""
        query = np.asarray(query)
        if not self.count or not query.any():
            return None
        if query.shape != (self.dimensions,):
            raise SpeckitError(
                "E002", f"the query has the shape {query.shape}, the store's vectors have ({self.dimensions},)"
            )
        direction: Column = query.astype(np.float64)
        return direction / np.linalg.norm(direction)

    def ranked(
        self, direction: Column, rows: NDArray[np.intp], limit: int, scope: Restriction, level: Level
    ) -> tuple[Ids, Column, Ids]:
        """The answer of `nearest` over these rows alone.

        Args:
            direction: The query as a unit vector, shape (dimensions,).
            rows: Row numbers to compare; rows of memories that are not admitted are skipped.
            limit: Number of results.
            scope: The memories that are admitted.
            level: "memory" or "chunk".

        Returns:
            Ids, cosines and best chunks, as from `nearest`.
        """
        rows = rows[scope.admits(self._parents[rows])]
        similarity = self._exact(direction, rows)
        chunks = self._chunks[rows]
        ids = chunks
        if level == "memory":
            ids = self._parents[rows]
            best = best_of_each(ids, chunks, -similarity)
            order = best[np.lexsort((ids[best], -similarity[best]))]
        else:
            order = np.lexsort((chunks, -similarity))
        order = order[:limit]
        return ids[order], similarity[order], chunks[order]

    def reaching(self, direction: Column, similarity: float, first: int) -> NDArray[np.intp]:
        """Rows from number `first` on that may reach a similarity to a unit vector, including removed rows. The rows
        must be all in the base or all after it."""
        rough = self._room.stretch(first, self.size - first) @ direction.astype(np.float32)
        return first + np.flatnonzero(rough >= similarity - self._margin())

    def vectors(self, ids: Ids) -> Vectors:
        """The vector of each chunk, the mean direction of a memory's chunks, or zeros; shape (n, dimensions)."""
        if not self._count:
            return np.zeros((len(ids), self._room.width), np.float32)
        ids = np.asarray(ids)
        at = np.minimum(self._ordered_chunks.searchsorted(ids), len(self._chunks) - 1)
        # Ids that are not chunks are memories, or unknown.
        is_chunk = (self._ordered_chunks[at] == ids) & (ids != HOLE)
        found: Vectors = self._room.take(self._by_chunk[at])
        others = (~is_chunk).nonzero()[0]
        if len(others):
            found[others] = 0.0
            # first, sizes: the run of each memory's chunks in `_by_memory`
            first = np.searchsorted(self._ordered_parents, ids[others], "left")
            sizes = np.searchsorted(self._ordered_parents, ids[others], "right") - first
            several = np.flatnonzero((sizes > 0) & (ids[others] != HOLE))
            if len(several):
                found[others[several]] = self._mean_directions(first[several], sizes[several])
        return found

    # _slots: (rows,) index in `_memories`; _by_chunk, _by_memory: (rows,) row numbers in order of chunk and of memory
    def _take(self, room: GrowableArray, chunks: Ids, parents: Ids) -> None:
        self._room = room
        self._chunks = chunks
        self._parents = parents
        # HOLE is a memory here too, if rows were removed; no scope admits it.
        self._memories = distinct(parents)
        self._slots = np.searchsorted(self._memories, parents)
        self._by_chunk = np.argsort(chunks, kind="stable")
        self._by_memory = np.lexsort((chunks, parents))
        self._ordered_chunks = chunks[self._by_chunk]
        self._ordered_parents = parents[self._by_memory]
        self._count = int(np.count_nonzero(chunks != HOLE))

    def _rough(self, direction: Vectors, scope: Restriction) -> Vectors:
        """Cosines of all rows in single precision, (rows,); with a narrow scope, excluded rows get `_EXCLUDED`."""
        if scope.size > GATHERED_SHARE * len(self._memories):
            return self._room.product(len(self._chunks), direction)
        admitted = scope.admits(self._memories.copy())[self._slots]
        rough = np.full(len(admitted), _EXCLUDED)
        rough[admitted] = self._room.take(np.flatnonzero(admitted)) @ direction
        return rough

    def _margin(self) -> float:
        """Twice the largest rounding error of a single-precision product of unit vectors plus that of `DECIMALS`."""
        # A dot product of d terms errs by at most d u / (1 - d u) |x| |y|, u = eps / 2 (Higham, Accuracy and
        # Stability of Numerical Algorithms, section 3.1); both vectors have length 1.
        return 2 * (self.dimensions * float(np.finfo(np.float32).eps) + 10.0**-DECIMALS)

    def _exact(self, direction: Column, rows: NDArray[np.intp]) -> Column:
        # A sum along an axis, not a matrix product: its order of summation does not depend on the number of rows.
        similarity: Column = (self._room.take(rows) * direction).sum(axis=1)
        # Adding zero turns a rounded -0.0 into 0.0.
        return np.clip(similarity.round(DECIMALS), -1.0, 1.0) + 0.0

    def _mean_directions(self, first: Ids, sizes: Ids) -> Vectors:
        """Unit vectors of the sums over consecutive runs of `_by_memory`; zeros where a sum is zero."""
        # places: first, first+1, … of each run, concatenated without a Python loop.
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1]) + np.repeat(first - (ends - sizes), sizes)
        rows = self._room.take(self._by_memory[places]).astype(np.float64)
        sums = np.add.reduceat(rows, ends - sizes, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        directions: Column = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
        return directions.astype(np.float32)
