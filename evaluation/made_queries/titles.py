"""Titles, as typed by a user who knows the title of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, common, is_content, postings
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.kind import MadeQuery, shuffle_items

_WORD = re.compile(r"\w+(?:[.'’-]\w+)*")
_LEAST_CONTENT = 2


def titles(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """The words of a title, at least two of which are not stop words; its document is relevant.

    No other document's title holds all these words.
    """
    tokens = [collection.tokens(document.title) for document in collection.documents]
    held = postings(tokens)
    for row in shuffle_items(range(len(tokens)), random):
        title = " ".join(_WORD.findall(collection.documents[row].title))
        enough = len({word for word in folded_words(title) if is_content(word)}) >= _LEAST_CONTENT
        if enough and common(held, tokens[row]) == (row,):
            yield MadeQuery(title, (row,))
