"""Two neighbouring words that occur together in one document only, by their stems or as they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, common, is_content, plain_runs
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items

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
    near = [pair for pair in _near(collection, row) if all(_fits(collection, word, fewest, most) for word in pair)]
    # False sorts before True: pairs of repeated words first, each group in random order, since sorting is stable.
    for first, second in sorted(shuffle_items(near, random), key=lambda pair: not repeated.issuperset(pair)):
        stems = (*collection.tokens(first), *collection.tokens(second))
        # Both words may have the same stem; such a pair asks for one word only.
        if len(set(stems)) == 2 and collection.with_tokens(stems) == (row,):
            yield MadeQuery(f"{first} {second}", (row,))


def _near(collection: Collection, row: int) -> Iterator[tuple[str, str]]:
    """The pairs of neighbouring content words of a document, folded."""
    runs = (run for line in collection.prose[row] for run in plain_runs(line.casefold()))
    near = (pair for run in runs for pair in pairwise(filter(is_content, run)))
    return (pair for pair in near if min(map(len, pair)) >= _LEAST_LETTERS)


def _fits(collection: Collection, word: str, fewest: int, most: int) -> bool:
    tokens = collection.tokens(word)
    return len(tokens) == 1 and fewest <= len(collection.by_stem.get(tokens[0], ())) <= most


def surfaces(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Two neighbouring content words of one document, in text order; no other document holds both in these inflections.

    Other documents hold both stems. Words have at least four letters.
    """
    rows = shuffle_items(range(len(collection.documents)), random)
    return in_turn(_surfaces_of(collection, row, random) for row in rows)


def _surfaces_of(collection: Collection, row: int, random: Random) -> Iterator[MadeQuery]:
    for first, second in shuffle_items(sorted(set(_near(collection, row))), random):
        stems = (*collection.tokens(first), *collection.tokens(second))
        if (
            len(set(stems)) == 2
            and common(collection.by_word, (first, second)) == (row,)
            and len(collection.with_tokens(stems)) > 1
        ):
            yield MadeQuery(f"{first} {second}", (row,))
