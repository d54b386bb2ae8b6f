"""BM25F: BM25 over weighted fields of the inverted indexes, which count as one bag of words per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import idf
from speckit_memory.pipeline.ports import Column, TermIndex
from speckit_memory.pipeline.ports.immutable import own

Rows = NDArray[np.intp]


_NOWHERE: tuple[NDArray[np.integer], Column] = (np.empty(0, np.intp), np.empty(0))


class WeightedField:
    """A weighted field of a bag. `places` are the index rows of the bag's rows, -1 for none; None: the same rows."""

    __slots__ = ("_index", "_members", "_same", "_starts", "_weight", "lengths")

    def __init__(self, index: TermIndex, weight: float, places: Rows | None) -> None:
        self._index = index
        self._weight = weight
        self._same = places is None
        self.lengths: Column = weight * index.lengths.astype(np.float64)
        if places is not None:
            self.lengths = np.append(self.lengths, 0.0)[places]
            # The bag's rows of each index row, one after the other.
            members = np.argsort(places, kind="stable")
            self._members: Rows = members[np.searchsorted(places[members], 0) :]
            self._starts = np.searchsorted(places[self._members], np.arange(len(index.ids) + 1))

    def occurrences(self, term: str) -> tuple[NDArray[np.integer], Column]:
        """The bag's rows that hold a term and its weighted frequency in each."""
        if not self._index.holders(term):
            return _NOWHERE  # most words stand in no title, trigger or path
        postings = self._index.postings(term)
        frequency = np.multiply(postings.frequency, self._weight, dtype=np.float64)
        if self._same:
            return postings.rows, frequency
        first = self._starts[postings.rows]
        count = self._starts[postings.rows + 1] - first
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return self._members[np.repeat(first, count) + within], np.repeat(frequency, count)


_MAX_KEPT = 2_000_000
"""So many contributions of terms are kept at most, about 24 MB: those of everyday words are needed again and again."""


class Bm25F:
    """Bags of words, one per row: frequencies and lengths are weighted sums over the parts, which saturate together.

    BM25 of Robertson and Walker (1994); weighted fields as in Robertson, Zaragoza and Taylor, "Simple BM25 Extension to
    Multiple Weighted Fields" (2004). `rows` are all rows, `count` those that are no holes. Feature C3.

    Any number of threads may ask. What a term contributes is kept, under a copy of the term, and never handed out.
    """

    __slots__ = ("_count", "_k1", "_keeping", "_known", "_norm", "_parts", "_room")

    def __init__(self, parts: Sequence[WeightedField], rows: int, count: int, k1: float, b: float) -> None:
        lengths = np.zeros(rows)
        for part in parts:
            lengths += part.lengths
        mean = lengths.sum() / count if count else 0.0
        self._parts = parts
        self._count = count
        self._k1 = k1
        # The part of the denominator that does not depend on the word.
        self._norm = k1 * (1.0 - b + b * lengths / mean) if mean else np.full(rows, k1)
        self._known: dict[str, tuple[NDArray[np.integer], Column]] = {}
        self._room = _MAX_KEPT
        self._keeping = Lock()

    def scores(self, terms: Mapping[str, float]) -> Column:
        """BM25 of every row: Σ weight · idf · tf·(k1+1) / (tf + norm)."""
        scores = np.zeros(len(self._norm))
        for term, weight in _plain(terms):
            rows, contribution = self._known.get(term) or self._contribution(term)
            scores[rows] += contribution if weight == 1.0 else weight * contribution
        return scores

    def coverage(self, terms: Mapping[str, float]) -> Column:
        """The share of the query's information, Σ weight · idf of its words, that each row holds; in [0, 1]."""
        held = np.zeros(len(self._norm))
        total = 0.0
        for term, weight in _plain(terms):
            rows, _ = self._known.get(term) or self._contribution(term)
            information = weight * self._idf(len(rows))
            held[rows] += information
            total += information
        return held / total if total else held

    def _idf(self, holders: int) -> float:
        return float(idf(np.array(holders, np.float64), self._count))

    def _contribution(self, term: str) -> tuple[NDArray[np.integer], Column]:
        """The rows that hold a term and what it adds to the score of each; kept while there is room."""
        rows, frequency = self._occurrences(term)
        if not len(rows):
            # No end of words occurs nowhere: they would fill the memory without ever taking room.
            return rows, frequency
        contribution = rows, frequency * (self._idf(len(rows)) * (self._k1 + 1.0)) / (frequency + self._norm[rows])
        with self._keeping:
            if self._room < len(rows):
                self._known, self._room = {}, _MAX_KEPT
            if term not in self._known:
                self._known[term] = contribution
                self._room -= len(rows)
        return contribution

    def _occurrences(self, term: str) -> tuple[NDArray[np.integer], Column]:
        """The rows that hold a term and its frequency summed over the parts."""
        found = [found for part in self._parts if len((found := part.occurrences(term))[0])]
        if len(found) < 2:
            return found[0] if found else _NOWHERE
        together = np.concatenate([rows for rows, _ in found])
        # The rows of each part ascend, or nearly: a merge. Of one row the parts stay in their order.
        order = np.argsort(together, kind="stable")
        ordered = together[order]
        first = np.append(True, ordered[1:] != ordered[:-1])
        frequency = np.concatenate([frequency for _, frequency in found])[order]
        return ordered[first], np.asarray(np.bincount(np.cumsum(first) - 1, weights=frequency), np.float64)


def _plain(terms: Mapping[str, float]) -> list[tuple[str, float]]:
    """Terms and weights as values that are what they say."""
    return [(own(term), float(weight)) for term, weight in terms.items()]
