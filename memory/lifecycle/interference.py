"""Interference: memories of one folder that are nearly the same, counted at index time (feature F9, TM-01)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil

SIMILARITY = 0.75
SHORTEST_WORD = 3

_BORDERS = re.compile(r"[\s,;|]+")


def words(text: str) -> frozenset[str]:
    """The words that are compared: case-folded, between blanks, commas, semicolons and bars, 3 characters or more."""
    return frozenset(word for word in _BORDERS.split(text.casefold()) if len(word) >= SHORTEST_WORD)


def counts(texts: Sequence[str], similarity: float = SIMILARITY) -> list[int]:
    """How many of the other texts each text interferes with: Jaccard similarity of their words above
    `similarity`.

    `texts` are the title and trigger phrases of the memories of one folder. A text without words interferes
    with none.

    Only pairs that can be similar enough are compared (prefix filtering, Chaudhuri et al. 2006): with the words
    of each text from rare to frequent, two texts above the threshold share a word among their first n - ceil(n
    · similarity) + 1.
    """
    bags = [words(text) for text in texts]
    frequency = Counter(word for bag in bags for word in bag)
    holders: defaultdict[str, list[int]] = defaultdict(list)
    found = [0] * len(bags)
    for place, bag in enumerate(bags):
        prefix = sorted(bag, key=lambda word: (frequency[word], word))[: len(bag) - ceil(len(bag) * similarity) + 1]
        for other in {candidate for word in prefix for candidate in holders[word]}:
            shared = len(bag & bags[other])
            if shared > similarity * (len(bag) + len(bags[other]) - shared):
                found[place] += 1
                found[other] += 1
        for word in prefix:
            holders[word].append(place)
    return found
