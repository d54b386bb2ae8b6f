"""Stack traces as people paste them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection
from speckit_memory.evaluation.made_queries.kind import MadeQuery
from speckit_memory.evaluation.made_queries.phrases import phrases

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
