"""Two words, neither rare, that stand together in one document only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from evaluation.made_queries.collection import Collection, is_content
from evaluation.made_queries.kind import MadeQuery, in_turn, shuffled

_FEWEST, _MOST, _SHARE = 5, 200, 0.1
_RUN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")
_LEAST_LETTERS = 3
_APART = 5


def pairs(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Pairs of words at most five words apart in a sentence of one document; no other document holds both.

    "Holds" is by the product's stems. Each word stands in 5 to 200 documents, at most a tenth of all; in small
    collections in fewer, two at least. The words are in the order of the text.
    """
    fewest = max(2, min(_FEWEST, len(collection.documents) // 30))
    most = max(fewest, min(_MOST, int(_SHARE * len(collection.documents))))
    rows = shuffled(range(len(collection.documents)), random)
    return in_turn(_of_document(collection, row, fewest, most, random) for row in rows)


def _of_document(collection: Collection, row: int, fewest: int, most: int, random: Random) -> Iterator[MadeQuery]:
    for line in shuffled(collection.prose[row], random):
        for run in _RUN.findall(line):
            for first, second in shuffled(_near(collection, run, fewest, most), random):
                stems = (*collection.tokens(first), *collection.tokens(second))
                if len(set(stems)) == 2 and collection.with_tokens(stems) == (row,):
                    yield MadeQuery(f"{first} {second}", (row,))


def _near(collection: Collection, run: str, fewest: int, most: int) -> list[tuple[str, str]]:
    """The pairs of neighbours among the words of a run that are frequent as wanted."""
    wanted = []
    for place, word in enumerate(run.casefold().split()):
        tokens = collection.tokens(word)
        if len(word) >= _LEAST_LETTERS and is_content(word) and len(tokens) == 1:
            if fewest <= len(collection.by_stem.get(tokens[0], ())) <= most:
                wanted.append((place, word))
    return [(one, other) for (here, one), (there, other) in pairwise(wanted) if there - here <= _APART]
