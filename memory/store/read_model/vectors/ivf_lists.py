"""Vectors in lists of like ones, eight bits for each number, of which a query reads the lists nearest to it.

The lists and the arithmetic on them are those of the library faiss, an inverted file with a scalar quantiser. What it
wrote is read where it lies: lists that no query comes near to are never in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import ceil, sqrt
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column, Ids, Vectors
from speckit_memory.pipeline.process.clock import opening

Bytes = NDArray[np.uint8]

INSTALL = "pip install 'speckit-memory[ann]'"
"""What brings the library."""

LISTS = 3.2
"""Times the square root of the number of rows: so many lists. More make a query faster, and writing slower."""
PROBES = 16.0
"""Times the square root of the number of lists: so many of them are read. Half of the lists of 100,000 rows, a third
of those of 400,000 and less of a million: of 300 questions, 0.994, 0.995 and 0.996 of the 50 nearest are found, and of
none less than 0.82 (docs/decisions/0055-like-rows-beyond-memory.md)."""
SAMPLED = 40
"""So many rows for each list tell where its middle is."""
ROUNDS = 10
"""So often the middles are moved."""
BLOCK = 4096
"""So many rows are in memory at a time."""
SEED = 1
_SUMMED = 1e-4
"""More than what is lost by adding up the numbers of a row in single precision."""


def installed() -> bool:
    """Whether the library is there; it is not imported."""
    try:
        return find_spec("faiss") is not None
    except ValueError:  # somebody keeps it from being imported
        return False


def list_count(rows: int) -> int:
    """In how many lists so many rows are laid."""
    return min(rows, round(LISTS * sqrt(rows)))


class LikeRows:
    """The lists of a file, read when they are first asked for. Safe to share between threads.

    Rows have the numbers that they had when they were written, from 0 on.
    """

    __slots__ = ("_errors", "_failure", "_index", "_loading", "_probes", "_stored", "size")

    def __init__(self, stored: Bytes, size: int) -> None:
        """Takes what `write` wrote of so many rows, which is not copied."""
        self.size = size
        self._stored = stored  # the index points into it
        self._loading = threading.Lock()
        self._index: Any = None
        self._failure = ""

    @property
    def failure(self) -> str:
        """Why the lists cannot be used, "" when they can: the library is not there, or its version is another."""
        if self._index is None and not self._failure:
            with opening(), self._loading:
                self._load()
        return self._failure

    def near(self, direction: Column, count: int) -> tuple[Ids, float]:
        """The rows most like a unit vector by their eight bits, at most `count`, of the lists nearest to it; and a
        similarity that no other row of these lists reaches, below every cosine when there is none.

        Raises RuntimeError when there was a `failure`.
        """
        import faiss

        if self.failure:
            raise RuntimeError(self.failure)
        wanted = faiss.SearchParametersIVF(nprobe=self._probes)
        similarities, rows = self._index.search(direction.astype(np.float32)[None], count, params=wanted)
        found: Ids = rows[0]
        if found[-1] < 0:  # -1 stands where the lists hold no more
            return found[found >= 0], -np.inf
        return found, float(similarities[0, -1]) + float(np.abs(direction) @ self._errors) + _SUMMED

    def _load(self) -> None:
        if self._index is not None or self._failure:
            return
        try:
            import faiss

            index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(self._stored), self._stored.size))
            _, ranges = np.split(faiss.vector_to_array(index.sq.trained).astype(np.float64), 2)
        except (ImportError, RuntimeError, AttributeError, ValueError) as error:
            self._failure = f"the index of vectors cannot be read: {error}"
            return
        self._errors = ranges / 255 / 2  # a number is stored as the middle of one of 255 steps
        self._probes = min(index.nlist, ceil(PROBES * sqrt(index.nlist)))
        self._index = index


def write(rows: Vectors, file: BinaryIO, pause: Callable[[], None] = lambda: None) -> None:
    """Writes lists of these unit vectors, at least one, to a file. `pause` is called between blocks.

    In memory are 40 rows for each list, and at the end the lists themselves: a little more than a byte for each number.
    """
    import faiss

    # of this thread alone: whoever searches meanwhile has the other processors
    faiss.omp_set_num_threads(1)
    count, dimensions = rows.shape
    middles = _middles(rows, list_count(count), pause)
    coarse = faiss.IndexFlatIP(dimensions)
    coarse.add(middles)
    index = faiss.IndexIVFScalarQuantizer(
        coarse, dimensions, len(middles), faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
    )
    low, high = np.full(dimensions, np.inf, np.float32), np.full(dimensions, -np.inf, np.float32)
    for block in _blocks(rows, pause):
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    # The range of every number over all rows, where the library would take that of a sample and cut off the others.
    faiss.copy_array_to_vector(np.concatenate([low, high - low]), index.sq.trained)
    index.is_trained = True
    for block in _blocks(rows, pause):
        index.add(block)
    faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
    file.flush()


def _middles(rows: Vectors, lists: int, pause: Callable[[], None]) -> Vectors:
    """The middles of the lists, unit vectors: spherical k-means of rows at equal distances."""
    import faiss

    places = np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED * lists)).astype(np.intp)
    sample = np.ascontiguousarray(rows[places], np.float32)
    middles: Vectors | None = None
    for _ in range(ROUNDS):
        pause()
        means = faiss.Kmeans(
            rows.shape[1],
            lists,
            niter=1,
            spherical=True,
            seed=SEED,
            min_points_per_centroid=1,
            max_points_per_centroid=SAMPLED + 1,
        )
        means.train(sample, init_centroids=middles)
        middles = means.centroids
    assert middles is not None
    return middles


def _blocks(rows: Vectors, pause: Callable[[], None]) -> Iterator[Vectors]:
    for start in range(0, len(rows), BLOCK):
        pause()
        yield np.ascontiguousarray(rows[start : start + BLOCK], np.float32)
