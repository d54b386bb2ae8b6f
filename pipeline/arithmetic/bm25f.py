"""BM25F: BM25 over weighted fields of the inverted indexes, combined into one bag of words per row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import first_of_runs, idf
from speckit_memory.pipeline.ports import Column, TermIndex

Rows = NDArray[np.intp]


_NOWHERE: Rows = np.empty(0, np.intp)
_MAX_KEPT = 250_000
"""Maximum number of cached rows over all terms, about 4 MB: common words are needed again and again. More made searches
hardly faster and servers much larger (docs/decisions/0078, 0117)."""
_MOST_RARITIES = 4_096
"""Maximum number of cached inverse document frequencies."""


T = TypeVar("T")


class _Kept(Generic[T]):
    """Thread-safe cache of a value per term, limited to `_MAX_KEPT` rows over all terms.

    The oldest entries are evicted first, except those of terms in the current query: in a large store one query may
    exceed the limit by itself, and would then evict its own terms each time.
    """

    __slots__ = ("_found", "_keeping", "_kept", "_rows", "get")

    def __init__(self) -> None:
        self._found: dict[str, T] = {}
        self._rows: dict[str, int] = {}
        self._kept = 0
        self._keeping = Lock()
        # look-ups take no lock: an entry is complete when it is inserted
        self.get = self._found.get

    def keep(self, term: str, found: T, rows: int, asked: Collection[str]) -> None:
        """Cache the value of a term, if there is room next to the entries of the current query.

        Args:
            term: The term.
            found: The value to cache.
            rows: The number of rows that hold the term, its size in the cache.
            asked: All terms of the current query; their entries are not evicted.
        """
        with self._keeping:
            if term in self._rows:
                return
            # Dicts keep insertion order, so the oldest entries come first.
            room, going = _MAX_KEPT - self._kept - rows, []
            for other, freed in self._rows.items():
                if room >= 0:
                    break
                if other not in asked:
                    going.append(other)
                    room += freed
            if room < 0:
                return
            for other in going:
                del self._found[other], self._rows[other]
            self._found[term], self._rows[term] = found, rows
            # the rows cached before, plus `rows`, minus those evicted
            self._kept = _MAX_KEPT - room


class BagField:
    """One field of the bags. `places` maps bag rows to index rows, -1 for none; None if they are equal."""

    __slots__ = ("_index", "_members", "_same", "_starts", "lengths")

    def __init__(self, index: TermIndex, places: Rows | None) -> None:
        self._index = index
        self._same = places is None
        self.lengths: Column = index.lengths.astype(np.float64)
        """The number of tokens of the field in each bag, float64[rows]."""
        if places is not None:
            # place -1 reads the 0 that is appended
            self.lengths = np.append(self.lengths, 0.0)[places]
            # Inverted mapping: the bags' rows of each index row, contiguous from `_starts`.
            members = np.argsort(places, kind="stable")
            # place + 1, since bincount takes no -1: count[0] is the number of bags without a row in this index
            count = np.bincount(places + 1, minlength=len(index.lengths) + 1)
            self._members: Rows = members[count[0] :]
            # the bags of index row i are _members[_starts[i] : _starts[i + 1]]
            self._starts = np.cumsum(count) - count[0]

    def occurrences(self, term: str) -> tuple[Rows, NDArray[np.float32]] | None:
        """The bags' rows that hold a term, unordered, and its frequency in each; None if no row does."""
        postings = self._index.postings(term)
        if not len(postings.rows):
            return None  # most words occur in no title, trigger or path
        if self._same:
            return postings.rows.astype(np.intp), postings.frequency
        # Expand each posting to all bag rows of its index row: first + 0 … count - 1.
        first = self._starts[postings.rows]
        count = self._starts[postings.rows + 1] - first
        ends = count.cumsum()
        places = np.arange(ends[-1]) + (first - ends + count).repeat(count)
        return self._members[places], postings.frequency.repeat(count)


Places = Rows | slice
Held = tuple[Rows, tuple[tuple[int, Places, Column], ...]]
"""The rows that hold a term, unordered; and per field: its number, the places of its rows among those rows, and the
term frequency in each."""


class Occurrences:
    """Term frequencies in the fields of bags, independent of the field weights: bags of several settings share them.

    Thread-safe. Results are cached by term and never handed out by the bags.
    """

    __slots__ = ("_fields", "_known", "_rarities", "count", "rows")

    def __init__(self, fields: Sequence[BagField], rows: int, count: int) -> None:
        self._fields = fields
        self.rows = rows
        """The number of rows, including holes."""
        self.count = count
        """The number of rows without holes."""
        self._known: _Kept[Held] = _Kept()
        self._rarities: dict[int, float] = {}

    def lengths(self, weights: Sequence[float]) -> Column:
        """The length of each row with these field weights, float64[rows]."""
        lengths = np.zeros(self.rows)
        for field, weight in zip(self._fields, weights, strict=True):
            lengths += weight * field.lengths
        return lengths

    def of(self, term: str, asked: Collection[str]) -> Held:
        """The rows and frequencies of a term; `asked` are all terms of the query."""
        return self._known.get(term) or self._found(term, asked)

    def idf(self, holders: int) -> float:
        """The inverse document frequency of a term that occurs in `holders` rows."""
        found = self._rarities.get(holders)
        if found is None:
            if len(self._rarities) >= _MOST_RARITIES:
                self._rarities = {}
            found = self._rarities[holders] = float(idf(np.array(holders, np.float64), self.count))
        return found

    def coverage(self, terms: list[tuple[str, float]]) -> Column:
        """The share of the weighted terms' information that each row holds."""
        held = np.zeros(self.rows)
        total = 0.0
        wanted = {term for term, _ in terms}
        for term, weight in terms:
            rows, _ = self.of(term, wanted)
            information = weight * self.idf(len(rows))
            # the rows of a term are distinct, so an indexed addition reaches each
            held[rows] += information
            total += information
        if total:
            held /= total
        return held

    def _found(self, term: str, asked: Collection[str]) -> Held:
        found = [(at, *seen) for at, field in enumerate(self._fields) if (seen := field.occurrences(term)) is not None]
        if not found:
            # Terms that occur nowhere are not cached: they are unlimited, and take no room that would evict them.
            return _NOWHERE, ()
        held = _together(found)
        self._known.keep(term, held, len(held[0]), asked)
        return held


def _together(found: list[tuple[int, Rows, NDArray[np.float32]]]) -> Held:
    """Merges the rows of all fields."""
    if len(found) == 1:  # most words occur in one field
        ((at, rows, frequency),) = found
        return rows, ((at, slice(0, len(rows)), frequency.astype(np.float64)),)
    every = np.concatenate([rows for _, rows, _ in found])
    every.sort(kind="stable")  # takes linear time: each field's rows ascend
    union = every[first_of_runs(every)]
    return union, tuple((at, union.searchsorted(rows), frequency.astype(np.float64)) for at, rows, frequency in found)


class Bm25F:
    """BM25 over bags of words: frequencies and lengths are weighted sums over the fields, which saturate together.

    BM25 of Robertson and Walker (1994); weighted fields as in Robertson, Zaragoza and Taylor, "Simple BM25 Extension to
    Multiple Weighted Fields" (2004). Feature C3.

    Thread-safe. The contribution of each term is cached under a copy of the term and never handed out.
    """

    __slots__ = ("_k1", "_known", "_norm", "_occurrences", "_weights")

    def __init__(self, occurrences: Occurrences, weights: Sequence[float], k1: float, b: float) -> None:
        """Prepare the length normalisation.

        Args:
            occurrences: Term frequencies in the fields.
            weights: A weight for each field of the occurrences.
            k1: Saturation, from 0.
            b: Length normalisation, 0 to 1.
        """
        # A row's length is Σ weight · field length, as its frequency is Σ weight · field frequency.
        lengths = occurrences.lengths(weights)
        mean = lengths.sum() / occurrences.count if occurrences.count else 0.0
        self._occurrences = occurrences
        self._weights = tuple(weights)
        self._k1 = k1
        # norm = k1 · (1 - b + b · length / mean length), (rows,): the denominator without tf
        self._norm = k1 * (1.0 - b + b * lengths / mean) if mean else np.full(occurrences.rows, k1)
        self._known: _Kept[tuple[Rows, Column]] = _Kept()

    def scores(self, terms: Mapping[str, float]) -> Column:
        """BM25 of every row: Σ weight · idf · tf·(k1+1) / (tf + norm)."""
        scores = np.zeros(len(self._norm))
        asked = _plain(terms)
        wanted = {term for term, _ in asked}
        for term, weight in asked:
            rows, contribution = self._known.get(term) or self._contribution(term, wanted)
            # no row occurs twice: the same result as an indexed sum, in half the time
            np.add.at(scores, rows, contribution if weight == 1.0 else weight * contribution)
        return scores

    def coverage(self, terms: Mapping[str, float]) -> Column:
        """The share of the query's information, Σ weight · idf of its words, that each row holds; in [0, 1]."""
        return self._occurrences.coverage(_plain(terms))

    def _contribution(self, term: str, asked: Collection[str]) -> tuple[Rows, Column]:
        """The rows that hold a term and its contribution to the score of each; cached if there is room."""
        rows, fields = self._occurrences.of(term, asked)
        if not fields:
            return rows, np.empty(0)
        frequency: Column
        if len(fields) == 1:
            frequency = self._weights[fields[0][0]] * fields[0][2]
        else:
            frequency = np.zeros(len(rows))
            for at, places, of_field in fields:
                frequency[places] += self._weights[at] * of_field
        # in place: for a common word of a large store each new array would touch fresh pages
        below = self._norm.take(rows)
        below += frequency
        frequency *= self._occurrences.idf(len(rows)) * (self._k1 + 1.0)
        frequency /= below
        contribution = rows, frequency
        self._known.keep(term, contribution, len(rows), asked)
        return contribution


def _plain(terms: Mapping[str, float]) -> list[tuple[str, float]]:
    """Terms with their weights as plain `float`."""
    return [(term, float(weight)) for term, weight in terms.items()]
