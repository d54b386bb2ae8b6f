"""Two words, neither rare, that stand together in one document only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, is_content
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffled
from speckit_memory.evaluation.made_queries.prose import plain_runs

_FEWEST, _MOST, _SHARE = 5, 200, 0.05
_LEAST_LETTERS = 4


def pairs(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Two neighbouring words of one document, if need be with stop words between; no other document holds both.

    "Holds" is by the product's stems. Each word stands in 5 to 200 documents, at most a twentieth of all; in small
    collections in fewer, two at least. The words are in the order of the text.
    """
    fewest = max(2, min(_FEWEST, len(collection.documents) // 30))
    most = max(fewest, min(_MOST, int(_SHARE * len(collection.documents))))
    rows = shuffled(range(len(collection.documents)), random)
    return in_turn(_of_document(collection, row, fewest, most, random) for row in rows)


def _of_document(collection: Collection, row: int, fewest: int, most: int, random: Random) -> Iterator[MadeQuery]:
    """What a document is about it says more than once: pairs of such words come first."""
    repeated = {word for word, count in Counter(collection.worded[row].split()).items() if count > 1}
    near = _near(collection, row, fewest, most)
    for first, second in sorted(shuffled(near, random), key=lambda pair: not repeated.issuperset(pair)):
        stems = (*collection.tokens(first), *collection.tokens(second))
        if len(set(stems)) == 2 and collection.with_tokens(stems) == (row,):
            yield MadeQuery(f"{first} {second}", (row,))


def _near(collection: Collection, row: int, fewest: int, most: int) -> list[tuple[str, str]]:
    """The neighbours among the words of a document that are both as frequent as wanted."""
    runs = (run for line in collection.prose[row] for run in plain_runs(line.casefold()))
    return [
        (first, second)
        for run in runs
        for first, second in pairwise(filter(is_content, run))
        if _fits(collection, first, fewest, most) and _fits(collection, second, fewest, most)
    ]


def _fits(collection: Collection, word: str, fewest: int, most: int) -> bool:
    tokens = collection.tokens(word)
    return (
        len(word) >= _LEAST_LETTERS
        and len(tokens) == 1
        and fewest <= len(collection.by_stem.get(tokens[0], ())) <= most
    )
