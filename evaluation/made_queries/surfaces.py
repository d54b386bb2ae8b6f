"""Two words in the inflections in which exactly one document holds both, while others hold other inflections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, common, is_content
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.evaluation.made_queries.prose import plain_runs

_LEAST_LETTERS = 4


def surfaces(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Two neighbouring content words of one document, in text order; no other document holds both in these inflections.

    Other documents hold both stems. Words have at least four letters.
    """
    rows = shuffle_items(range(len(collection.documents)), random)
    return in_turn(_of_document(collection, row, random) for row in rows)


def _of_document(collection: Collection, row: int, random: Random) -> Iterator[MadeQuery]:
    runs = (run for line in collection.prose[row] for run in plain_runs(line.casefold()))
    near = {
        pair for run in runs for pair in pairwise(filter(is_content, run)) if len(min(pair, key=len)) >= _LEAST_LETTERS
    }
    for first, second in shuffle_items(sorted(near), random):
        stems = (*collection.tokens(first), *collection.tokens(second))
        if (
            len(set(stems)) == 2
            and common(collection.by_word, (first, second)) == (row,)
            and len(collection.with_tokens(stems)) > 1
        ):
            yield MadeQuery(f"{first} {second}", (row,))
