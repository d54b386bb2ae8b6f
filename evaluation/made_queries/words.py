"""Single rare words, judged by the documents that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, Rows, is_content
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.evaluation.made_queries.prose import plain_runs

FREQUENCIES = (1, 2, 3, 5)
"""Document frequencies of the words."""

_LEAST_LETTERS = 4


def words(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Words that occur in exactly 1, 2, 3 or 5 documents, in equal numbers; all these documents are relevant.

    Words have at least four letters and nothing else, are not stop words, and occur in a sentence somewhere. No other
    document holds a word of the same stem, not even as part of a name.
    """
    rare = rare_words(collection, FREQUENCIES, _LEAST_LETTERS)
    return in_turn(_queries(shuffle_items(rare[df], random), df) for df in shuffle_items(rare, random))


def _queries(drawn: list[tuple[str, Rows]], df: int) -> Iterator[MadeQuery]:
    return (MadeQuery(word, rows, {"df": df}) for word, rows in drawn)


def rare_words(
    collection: Collection, frequencies: Iterable[int], least_letters: int
) -> Mapping[int, list[tuple[str, Rows]]]:
    """The unambiguous words by document frequency, with their documents."""
    rare: dict[int, list[tuple[str, Rows]]] = {df: [] for df in frequencies}
    for word in sorted(_plain_words(collection, least_letters)):
        rows = collection.unmistakable(word)
        if len(rows) in rare:
            rare[len(rows)].append((word, rows))
    return rare


def _plain_words(collection: Collection, least_letters: int) -> set[str]:
    """Every folded word that occurs in a sentence by itself and not in capitals."""
    written = {word for lines in collection.prose for line in lines for run in plain_runs(line) for word in run}
    folded = {word.casefold() for word in written if word[1:].islower()}
    return {word for word in folded if len(word) >= least_letters and is_content(word)}
