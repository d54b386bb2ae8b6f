"""Five words in a row that occur in one document only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, is_content
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items

_LENGTH = 5
_LEAST_CONTENT = 2
_RUN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*(?:[ \t]+[^\W_]+(?:['’-][^\W_]+)*){4,}")


def phrases(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Five words in a row of a sentence, as written, including stop words; at least two are not stop words.

    Exactly one document holds them in this order, regardless of spacing, punctuation and case; it is relevant.
    """
    return _phrases(collection, random, _LEAST_CONTENT, _LENGTH)


def stop_phrases(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Five words in a row that are mostly stop words; at most two are not."""
    return _phrases(collection, random, 0, _LENGTH // 2)


def _phrases(collection: Collection, random: Random, least: int, most: int) -> Iterator[MadeQuery]:
    rows = shuffle_items(range(len(collection.documents)), random)
    return in_turn(_of_document(collection, row, random, least, most) for row in rows)


def _of_document(collection: Collection, row: int, random: Random, least: int, most: int) -> Iterator[MadeQuery]:
    """Yields phrases in which the number of content words is between `least` and `most`."""
    for line in shuffle_items(collection.prose[row], random):
        for run in shuffle_items(_RUN.findall(line), random):
            written = run.split()
            start = random.randrange(len(written) - _LENGTH + 1)
            phrase = " ".join(written[start : start + _LENGTH])
            sequence = folded_words(phrase)
            content = sum(map(is_content, sequence))
            if least <= content <= most and collection.with_sequence(sequence) == (row,):
                yield MadeQuery(phrase, (row,))
