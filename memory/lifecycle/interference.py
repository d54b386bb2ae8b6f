"""Interference: counts near-duplicate memories of the same folder at index time (feature F9, TM-01)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from math import ceil

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.writing import near_duplicates

SIMILARITY = 0.75
MANY = 32
"""If more than one in this many texts is a candidate, comparing with all texts at once is faster."""
SHORTEST_WORD = 3
FOLDERS_AT_ONCE = 100
"""Folders that are read and counted at a time."""

_BORDERS = re.compile(r"[\s,;|]+")


def words(text: str) -> frozenset[str]:
    """The words to compare: case-folded, split at white space, commas, semicolons and bars, 3 characters or more."""
    return frozenset(word for word in _BORDERS.split(text.casefold()) if len(word) >= SHORTEST_WORD)


def counts(texts: Sequence[str], similarity: float = SIMILARITY) -> list[int]:
    """For each text, the number of other texts with a Jaccard similarity of words above `similarity` (0 to 1).

    `texts` are the titles and trigger phrases of the memories of one folder. A text without words interferes with none.

    Only pairs that can be similar enough are compared (prefix filtering, Chaudhuri et al. 2006): with the n words of
    each text ordered from rare to frequent, two texts above the threshold share a word among their first
    n - ceil(n · similarity) + 1. Texts with equal words are compared once.
    """
    bags = [words(text) for text in texts]
    times = Counter(bag for bag in bags if bag)
    distinct = list(times)
    frequency = Counter(word for bag in distinct for word in bag)
    holders: defaultdict[str, list[int]] = defaultdict(list)
    # An inverted index of prefixes: only texts that share a rare word are candidates.
    prefixes = []
    for place, bag in enumerate(distinct):
        rare_first = sorted(bag, key=lambda word: (frequency[word], word))
        prefixes.append(rare_first[: len(bag) - ceil(len(bag) * similarity) + 1])
        for word in prefixes[place]:
            holders[word].append(place)

    at_once = _ComparedAtOnce(distinct, list(times.values()), similarity)
    found: dict[frozenset[str], int] = {}
    for place, (bag, prefix) in enumerate(zip(distinct, prefixes, strict=True)):
        # Many candidates: one vectorised pass is cheaper than set operations per pair.
        if sum(len(holders[word]) for word in prefix) > len(distinct) // MANY:
            found[bag] = at_once.near(place)
        else:
            others = {other for word in prefix for other in holders[word]}
            found[bag] = sum(times[distinct[other]] for other in others if _similar(bag, distinct[other], similarity))
    return [found[bag] - 1 if bag else 0 for bag in bags]  # minus the text itself


def recount(database: Database) -> None:
    """Store the number of near duplicates of every memory in each folder with added, changed or removed memories.

    Folders are read and counted without the write lock, some at a time, each from one consistent state.
    """
    uncounted = iter(near_duplicates.uncounted_folders(database.reader()))
    while folders := list(islice(uncounted, FOLDERS_AT_ONCE)):
        counted = [(found, counts(found.texts)) for found in near_duplicates.siblings(database, folders)]
        with database.write() as txn:
            near_duplicates.store_counts(txn, counted)


def _similar(bag: frozenset[str], other: frozenset[str], similarity: float) -> bool:
    shared = len(bag & other)
    return shared > similarity * (len(bag) + len(other) - shared)


class _ComparedAtOnce:
    """Compares one bag of words with all others, for bags that share words with many."""

    def __init__(self, bags: Sequence[frozenset[str]], times: Sequence[int], similarity: float) -> None:
        self._bags, self._times, self._similarity = bags, np.array(times, np.int64), similarity
        self._sizes = np.array([len(bag) for bag in bags], np.int64)

    @cached_property
    def _holders(self) -> dict[str, NDArray[np.int64]]:
        """The places of each word; computed when first needed."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, bag in enumerate(self._bags):
            for word in bag:
                places[word].append(place)
        return {word: np.array(found, np.int64) for word, found in places.items()}

    def near(self, place: int) -> int:
        """Number of texts whose bags are similar to this one, including itself."""
        bag = self._bags[place]
        shared = np.bincount(np.concatenate([self._holders[word] for word in bag]), minlength=len(self._bags))
        # J = |A ∩ B| / |A ∪ B| > s, without division: |A ∩ B| > s (|A| + |B| - |A ∩ B|); all arrays are (bags,)
        near = shared > self._similarity * (len(bag) + self._sizes - shared)
        return int(self._times[near].sum())
