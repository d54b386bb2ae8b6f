"""Five words in a row that occur in one document only, alone or as the message of a stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, is_content
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items

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


_FRAMES = 4
_FORMS = (
    (
        "Traceback (most recent call last):\n",
        '  File "/srv/app/{0}/{1}.py", line {2}, in {3}\n    {1}.{3}()\n',
        "",
        "RuntimeError: {}",
    ),
    (
        "",
        "\tat com.example.{0}.{1}.{3}({1}.java:{2})\n",
        'Exception in thread "main" java.lang.IllegalStateException: {}\n',
        "",
    ),
    ("", "    at {1}.{3} (/srv/app/{0}/{1}.js:{2}:7)\n", "Error: {}\n", ""),
)
"""Formats for Python, Java and JavaScript: first line, frame, and the lines above and below the frames."""


def traces(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """The trace of an exception whose message is five words in a row of one document, which is relevant.

    The frames name files and functions after random words of all documents and do not match any one of them.
    """
    vocabulary = sorted(word for word in collection.by_word if word.isascii() and word.isalpha() and len(word) > 3)
    forms = cycle(_FORMS)
    for phrase in phrases(collection, random):
        if not vocabulary:
            return
        # Python states the message below the frames, Java and JavaScript above
        first, frame, above, below = next(forms)
        frames = (
            frame.format(*random.choices(vocabulary, k=2), random.randrange(9, 400), random.choice(vocabulary))
            for _ in range(_FRAMES)
        )
        text = f"{first}{above.format(phrase.text)}{''.join(frames)}{below.format(phrase.text)}".rstrip()
        yield MadeQuery(text, phrase.relevant)
