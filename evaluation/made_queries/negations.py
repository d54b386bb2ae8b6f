"""Queries for documents with one word and without another, as people phrase them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.evaluation.made_queries.words import rare_words

_FREQUENCIES = (3, 4, 5, 6, 7, 8)
_LEAST_LETTERS = 5
_FORMS = ("{} but not {}", "{}, not {}", "{} except {}")


def negations(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """`caching but not redis`, `caching, not redis` or `caching except redis`.

    The first word occurs in three to eight documents, the second in some of these; the others are relevant. Both have
    at least five letters, and no document has the second one after "not", "without" or "except".
    """
    rare = rare_words(collection, _FREQUENCIES, _LEAST_LETTERS)
    rows_of = {word: frozenset(rows) for words in rare.values() for word, rows in words}
    of_row: dict[int, list[str]] = {}
    for word in sorted(rows_of):
        for row in rows_of[word]:
            of_row.setdefault(row, []).append(word)
    forms = cycle(_FORMS)

    def asking(word: str) -> Iterator[MadeQuery]:
        rows = rows_of[word]
        # words in some, not all, of these documents
        beside = {other for row in rows for other in of_row[row] if not rows_of[other] >= rows}
        for other in shuffle_items(sorted(beside), random):
            if not any(collection.with_sequence((sign, other)) for sign in ("not", "without", "except")):
                yield MadeQuery(next(forms).format(word, other), tuple(sorted(rows - rows_of[other])))

    return in_turn(map(asking, shuffle_items(sorted(rows_of), random)))
