"""Vectors in inverted lists of similar ones, eight bits per component; a query reads the lists nearest to it.

Lists and arithmetic are those of the faiss library: an inverted file with a scalar quantiser. The written bytes are
used in place through the mapped file: lists that no query comes near to are never loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.util import find_spec
from math import ceil, sqrt
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column, Ids, Vectors
from speckit_memory.pipeline.process.clock import opening
from speckit_memory.pipeline.process.yielding import yield_now

Bytes = NDArray[np.uint8]

INSTALL = "pip install 'speckit-memory[ann]'"
"""The command that installs the library."""

LISTS = 3.2
"""Number of lists, as a multiple of √rows. More lists make queries faster and writing slower."""
PROBES = 16.0
"""Number of lists that a query reads, as a multiple of √lists: half of the lists of 100,000 rows, a third of those of
400,000, fewer of a million. Over 300 queries, 0.994, 0.995 and 0.996 of the 50 nearest rows are found, and never less
than 0.82 of them (docs/decisions/0055-like-rows-beyond-memory.md)."""
SAMPLED = 40
"""Rows sampled per list to compute its centroid."""
ROUNDS = 10
"""Iterations of k-means."""
BLOCK = 4096
"""Rows in memory at a time."""
SEED = 1
_SUMMED = 1e-4
"""An upper bound of the error of summing a row in single precision."""


def is_faiss_installed() -> bool:
    """Whether the library is installed; it is not imported."""
    try:
        return find_spec("faiss") is not None
    except ValueError:  # sys.modules holds a module without a spec
        return False


def list_count(rows: int) -> int:
    """Number of lists for a number of rows."""
    return min(rows, round(LISTS * sqrt(rows)))


class InvertedLists:
    """The lists of a file, loaded on first use. Safe to share between threads.

    Rows keep the numbers that they had when they were written, counted from 0.
    """

    __slots__ = ("_errors", "_failure", "_index", "_loading", "_probes", "_stored", "size")

    def __init__(self, stored: Bytes, size: int) -> None:
        """`stored` holds the bytes that `write` wrote for `size` rows; they are not copied."""
        self.size = size
        self._stored = stored  # the index points into it
        self._loading = threading.Lock()
        self._index: Any = None
        self._failure = ""

    @property
    def failure(self) -> str:
        """Why the lists cannot be used (library missing or of another version); "" when they can."""
        if self._index is None and not self._failure:
            with opening(), self._loading:
                self._load()
        return self._failure

    def near(self, direction: Column, count: int) -> tuple[Ids, float]:
        """The rows most similar to a unit vector by their eight bits, at most `count`, from the lists nearest to it;
        and an upper bound of the similarity of all other rows in these lists, below every cosine when there are none.

        Raises RuntimeError when `failure` is not empty.
        """
        import faiss

        if self.failure:
            raise RuntimeError(self.failure)
        wanted = faiss.SearchParametersIVF(nprobe=self._probes)
        # similarities, rows: (1, count), most similar first
        similarities, rows = self._index.search(direction.astype(np.float32)[None], count, params=wanted)
        found: Ids = rows[0]
        if found[-1] < 0:  # faiss fills up with -1 when the lists hold fewer rows
            return found[found >= 0], -np.inf
        # similarity by eight bits + the largest quantisation error of the product + the error of summing
        return found, float(similarities[0, -1]) + float(np.abs(direction) @ self._errors) + _SUMMED

    def _load(self) -> None:
        if self._index is not None or self._failure:
            return
        try:
            import faiss

            # No copy: the index refers to the mapped bytes, which `self._stored` keeps alive.
            index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(self._stored), self._stored.size))
            # trained: (2 * dimensions,), the minimum of each component, then its range
            _, ranges = np.split(faiss.vector_to_array(index.sq.trained).astype(np.float64), 2)
        except (ImportError, RuntimeError, AttributeError, ValueError) as error:
            self._failure = f"the index of vectors cannot be read: {error}"
            return
        self._errors = ranges / 255 / 2  # a number is stored as the middle of one of 255 steps
        self._probes = min(index.nlist, ceil(PROBES * sqrt(index.nlist)))
        self._index = index


def write(rows: Vectors, file: BinaryIO) -> None:
    """Write the lists of these unit vectors, at least one, to a file.

    Holds 40 rows per list in memory, and at the end the lists themselves: slightly more than a byte per component.
    """
    import faiss

    # single-threaded: concurrent searches get the other processors
    faiss.omp_set_num_threads(1)
    count, dimensions = rows.shape
    middles = _middles(rows, list_count(count))
    coarse = faiss.IndexFlatIP(dimensions)
    coarse.add(middles)
    index = faiss.IndexIVFScalarQuantizer(
        coarse, dimensions, len(middles), faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
    )
    # Two passes over the rows: the range of each component, then the quantised rows.
    low, high = np.full(dimensions, np.inf, np.float32), np.full(dimensions, -np.inf, np.float32)
    for block in _blocks(rows):
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    # The range of each component over all rows; the library would use that of a sample and clip the rest.
    faiss.copy_array_to_vector(np.concatenate([low, high - low]), index.sq.trained)
    index.is_trained = True
    for block in _blocks(rows):
        index.add(block)
    faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
    file.flush()


def _middles(rows: Vectors, lists: int) -> Vectors:
    """The centroids of the lists, unit vectors: spherical k-means over evenly spaced rows."""
    import faiss

    places = np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED * lists)).astype(np.intp)
    sample = np.ascontiguousarray(rows[places], np.float32)
    middles: Vectors | None = None
    # One iteration per call, to yield between iterations.
    for _ in range(ROUNDS):
        yield_now()
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


def _blocks(rows: Vectors) -> Iterator[Vectors]:
    for start in range(0, len(rows), BLOCK):
        yield_now()
        yield np.ascontiguousarray(rows[start : start + BLOCK], np.float32)
