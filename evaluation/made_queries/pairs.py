"""Two words, neither of them rare, that occur together in one document only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, is_content
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.evaluation.made_queries.prose import plain_runs

_FEWEST, _MOST, _SHARE = 5, 200, 0.05
_LEAST_LETTERS = 4


def pairs(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Two neighbouring content words of one document, in text order; no other document holds both.

    Words are compared by the product's stems. Each occurs in 5 to 200 documents and at most a twentieth of all; in
    small collections in fewer, at least two.
    """
    fewest = max(2, min(_FEWEST, len(collection.documents) // 30))
    most = max(fewest, min(_MOST, int(_SHARE * len(collection.documents))))
    rows = shuffle_items(range(len(collection.documents)), random)
    return in_turn(_of_document(collection, row, fewest, most, random) for row in rows)


def _of_document(collection: Collection, row: int, fewest: int, most: int, random: Random) -> Iterator[MadeQuery]:
    """Yields pairs of neighbours; pairs of words that the document repeats come first, as they describe its topic."""
    repeated = {word for word, count in Counter(collection.worded[row].split()).items() if count > 1}
    near = _near(collection, row, fewest, most)
    # False sorts before True: pairs of repeated words first, each group in random order, since sorting is stable.
    for first, second in sorted(shuffle_items(near, random), key=lambda pair: not repeated.issuperset(pair)):
        stems = (*collection.tokens(first), *collection.tokens(second))
        # Both words may have the same stem; such a pair asks for one word only.
        if len(set(stems)) == 2 and collection.with_tokens(stems) == (row,):
            yield MadeQuery(f"{first} {second}", (row,))


def _near(collection: Collection, row: int, fewest: int, most: int) -> list[tuple[str, str]]:
    """The pairs of neighbouring words of a document whose document frequencies are in range."""
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
