"""A small inverted index of the entries added to a larger one after its base was built."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.words.numbered import NumberedTexts
from speckit_memory.pipeline.ports import Ids, Postings

MOST_TOGETHER = 512
"""Entries merged at most at a time: merging 2,000, of 300 words each, takes 0.1 s of a search."""

Integers = NDArray[np.integer[Any]]


class LateTexts(NamedTuple):
    """The texts of entries that are added to an index (format: `numbered`)."""

    ids: Ids
    """Entry ids in row order."""
    texts: tuple[str, ...]
    numbered: NumberedTexts
    """The same texts as term numbers."""
    entry_of_text: NDArray[np.int64]
    """For each text, the index in `ids` of the entry it belongs to."""

    @classmethod
    def of(cls, ids: Ids, texts: tuple[str, ...]) -> Self:
        """Entries with one text each."""
        return cls(ids, texts, NumberedTexts.of(texts), np.arange(len(texts)))


class LateEntries(NamedTuple):
    """Postings of consecutive rows, grouped by term. Immutable."""

    codes: Mapping[str, int]
    """The terms, numbered 0, 1, … in iteration order."""
    starts: Sequence[int]
    """Where the postings of each term begin, then where the last ones end."""
    every: Postings
    """All postings, by term, then by row."""
    entries: int

    @classmethod
    def of(cls, late: LateTexts, first: int) -> Self:
        """The entries of these texts; their rows are numbered from `first`."""
        numbered, entries = late.numbered, len(late.ids)
        codes, rows, frequency = group_postings(numbered.codes, np.repeat(late.entry_of_text, numbered.sizes), entries)
        return cls._ordered(numbered.numbering, codes, Postings(rows + np.int32(first), frequency), entries)

    def followed_by(self, later: LateEntries) -> LateEntries:
        """Both merged into one; the rows of `later` are higher."""
        # the terms of `self` keep their numbers
        numbering: defaultdict[str, int] = defaultdict(count(len(self.codes)).__next__, self.codes)
        number = np.array([numbering[term] for term in later.codes], np.int64)
        codes = np.concatenate([self.code_of_each(), number[later.code_of_each()]])
        # Stable: within a term, the rows of `self` stay before those of `later`, hence ascending.
        by_term = np.argsort(codes, kind="stable")
        rows = np.concatenate([self.every.rows, later.every.rows])[by_term]
        frequency = np.concatenate([self.every.frequency, later.every.frequency])[by_term]
        total = self.entries + later.entries
        return self._ordered(dict(numbering), codes[by_term], Postings(rows, frequency), total)

    def code_of_each(self) -> Integers:
        """The term number of each posting."""
        return np.repeat(np.arange(len(self.codes)), np.diff(self.starts))

    def postings(self, term: str) -> Postings:
        """The postings of a term. Raises KeyError for an unknown one."""
        code = self.codes[term]
        held = slice(self.starts[code], self.starts[code + 1])
        return Postings(self.every.rows[held], self.every.frequency[held])

    @classmethod
    def _ordered(cls, codes: Mapping[str, int], code_of_each: Integers, every: Postings, entries: int) -> Self:
        # code_of_each: (postings,) ascending, so bisection finds where each term begins
        return cls(codes, np.searchsorted(code_of_each, np.arange(len(codes) + 1)).tolist(), every, entries)


def with_latest(earlier: tuple[LateEntries, ...], latest: LateEntries) -> tuple[LateEntries, ...]:
    """Append the latest part and merge small parts: parts stay few, each entry is moved seldom, and no change waits
    long for a merge."""
    parts = list(earlier)
    # As in a log-structured merge tree: merge while the previous part is not larger, up to a bound.
    while parts and parts[-1].entries <= min(latest.entries, MOST_TOGETHER - latest.entries):
        latest = parts.pop().followed_by(latest)
    return (*parts, latest)


def group_postings(
    codes: NDArray[np.int64], rows: Integers, height: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Postings of tokens with these codes in these rows, all below `height`: the code, row and frequency of each,
    ordered by code, then row."""
    # One sort of (term, row) pairs packed into single numbers groups, orders and counts the postings at once.
    # codes, rows: (tokens,); the results: (postings,)
    pairs, frequency = np.unique(codes * height + rows, return_counts=True)
    code, row = np.divmod(pairs, max(height, 1))
    return code, row.astype(np.int32), frequency.astype(np.float32)
