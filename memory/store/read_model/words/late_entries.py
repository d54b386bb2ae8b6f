"""A small inverted index of the entries added to a larger one after its base was built.

Texts are tokens with a blank before each: concatenated texts are a text again, and a text with one empty token differs
from the empty text.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.reading import loading
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Ids, Postings

MOST_TOGETHER = 512
"""Entries merged at most at a time: merging 2,000, of 300 words each, takes 0.1 s of a search."""

Integers = NDArray[np.integer[Any]]


class LateTexts(NamedTuple):
    """The texts of entries that are added to an index, also as term numbers. Immutable."""

    ids: Ids
    """Entry ids in row order."""
    texts: tuple[str, ...]
    entry_of_text: NDArray[np.int64]
    """For each text, the index in `ids` of the entry it belongs to."""
    numbering: Mapping[str, int]
    """The number of each term: 0, 1, … in order of first occurrence."""
    codes: NDArray[np.int64]
    """(tokens,): the term of each token, text after text."""
    sizes: NDArray[np.int64]
    """(texts,): the number of tokens of each text."""

    @classmethod
    def of(cls, ids: Ids, texts: tuple[str, ...]) -> Self:
        """Entries with one text each."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        codes = array("q")
        for text in texts:
            if text:
                # The first blank would give an empty token; each unseen term gets the next number.
                codes.extend(map(numbering.__getitem__, text[1:].split(" ")))
        sizes = np.array([text.count(" ") for text in texts], np.int64)
        return cls(ids, texts, np.arange(len(texts)), dict(numbering), np.array(codes, np.int64), sizes)


def read_late_texts(connection: Connection, memories: Ids, columns: Columns) -> dict[Part, LateTexts]:
    """The texts of these memories and of their chunks by part; each text is read and numbered once."""
    fields = {id_: rest for id_, *rest in loading.load_fields(connection, memories)}
    found: dict[Part, LateTexts] = {}
    for at, field in enumerate(FIELDS[: FIELDS.index("body")]):
        said = tuple(_spaced(fields[id_][at]) if id_ in fields else "" for id_ in memories.tolist())
        found[field, "memory"] = LateTexts.of(memories, said)
    ids = columns.chunks_of(memories)
    of_chunks = {chunk: text for chunk, _, _, text in loading.load_chunks(connection, memories)}
    chunks = LateTexts.of(ids, tuple(_spaced(of_chunks.get(id_, "")) for id_ in ids.tolist()))
    # ids need not be ascending: the place of each parent is looked up
    place = {memory: number for number, memory in enumerate(memories.tolist())}
    # The bodies of memories are the texts of their chunks, shared and grouped by parent.
    parents = np.array([place[memory] for memory in columns.parents(ids).tolist()], np.int64)
    found["body", "chunk"] = chunks
    found["body", "memory"] = chunks._replace(ids=memories, entry_of_text=parents)
    return found


def _spaced(text: str) -> str:
    """Blank-joined tokens as a text with a leading blank; tokens may contain other white space."""
    return f" {text}" if text else ""


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
        height = len(late.ids)
        # One sort of (term, row) pairs packed into single numbers groups, orders and counts the postings at once.
        # pairs: (tokens,); code, row, frequency: (postings,)
        pairs = late.codes * height + np.repeat(late.entry_of_text, late.sizes)
        pairs, frequency = np.unique(pairs, return_counts=True)
        code, row = np.divmod(pairs, max(height, 1))
        every = Postings((row + first).astype(np.int32), frequency.astype(np.float32))
        return cls._ordered(late.numbering, code, every, height)

    def followed_by(self, later: LateEntries) -> LateEntries:
        """Both merged into one; the rows of `later` are higher."""
        # the terms of `self` keep their numbers
        numbering: defaultdict[str, int] = defaultdict(count(len(self.codes)).__next__, self.codes)
        number = np.array([numbering[term] for term in later.codes], np.int64)
        codes = np.concatenate([self._code_of_each(), number[later._code_of_each()]])
        # Stable: within a term, the rows of `self` stay before those of `later`, hence ascending.
        by_term = np.argsort(codes, kind="stable")
        rows = np.concatenate([self.every.rows, later.every.rows])[by_term]
        frequency = np.concatenate([self.every.frequency, later.every.frequency])[by_term]
        total = self.entries + later.entries
        return self._ordered(dict(numbering), codes[by_term], Postings(rows, frequency), total)

    def postings(self, term: str) -> Postings:
        """The postings of a term. Raises KeyError for an unknown one."""
        code = self.codes[term]
        held = slice(self.starts[code], self.starts[code + 1])
        return Postings(self.every.rows[held], self.every.frequency[held])

    def _code_of_each(self) -> Integers:
        """The term number of each posting."""
        return np.repeat(np.arange(len(self.codes)), np.diff(self.starts))

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
