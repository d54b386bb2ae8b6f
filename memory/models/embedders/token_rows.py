"""Converts the stored token vectors to unit rows on demand (feature I6).

A search needs a few hundred of 32,000 rows. Converting all of them would take longer than a search, and 32 MB per
process.
"""

from __future__ import annotations

import mmap
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Ids, Tokens, Vectors

_BLOCK = 1024


class TokenRows:
    """A unit vector and a weight per token. Safe to share between threads: concurrent writes store equal values."""

    def __init__(self, stored: NDArray[np.float16], factors: NDArray[np.float32]) -> None:
        """Take the stored vectors, shape (tokens, dimensions), without a copy, and factors of their lengths, (tokens,).

        Half precision saves disk space, but would need a slow conversion at every use.
        """
        self._stored = stored
        self._factors = factors
        # Zero until `_there` says otherwise: (tokens, dimensions) float32.
        self._units: Vectors = _untouched(stored.size).reshape(stored.shape)
        self._weights = np.empty(len(stored), np.float32)
        self._there = np.zeros(len(stored), np.bool_)

    def units(self, tokens: Ids | Tokens) -> Vectors:
        """Return unit rows, shape (n, dimensions); zeros for a token whose stored vector is zero. Never a view."""
        self._fill(tokens)
        units: Vectors = self._units.take(tokens, axis=0)
        return units

    def weights(self, tokens: Ids | Tokens) -> NDArray[np.float32]:
        """Return the length of each token's stored vector times its factor, shape (n,)."""
        self._fill(tokens)
        weights: NDArray[np.float32] = self._weights.take(tokens)
        return weights

    @cached_property
    def weighted(self) -> Vectors:
        """All unit rows times their weights, 32 MB, for embedding many texts; built in blocks to bound memory."""
        weighted = np.empty(self._stored.shape, np.float32)
        for begin in range(0, len(weighted), _BLOCK):
            units, weights = self._made(np.arange(begin, min(begin + _BLOCK, len(weighted))))
            weighted[begin : begin + _BLOCK] = units * weights[:, None]
        return weighted

    def _fill(self, tokens: Ids | Tokens) -> None:
        # Indexing with token ids gives (n,) bool: which of them have no row yet.
        missing = tokens[~self._there[tokens]]
        if not len(missing):
            return
        new = distinct(missing)  # a pasted page may repeat a token a thousand times
        # The flags are set last, so that another thread never reads an unfinished row.
        self._units[new], self._weights[new] = self._made(new)
        self._there[new] = True

    def _made(self, tokens: NDArray[np.integer[Any]]) -> tuple[Vectors, NDArray[np.float32]]:
        # rows: (n, dimensions) float32; lengths: (n,); the tiny divisor keeps zero rows zero
        rows = self._stored[tokens].astype(np.float32)
        # Row-wise sum of squares without a temporary (n, dimensions).
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return rows / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None], self._factors[tokens] * lengths


def _untouched(count: int) -> NDArray[np.float32]:
    """Return an array whose untouched pages use no memory; `np.empty` would use huge pages of 2 MB."""
    # Anonymous memory: the system gives zeros, page by page, at the first write.
    pages = mmap.mmap(-1, 4 * count)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.float32)
