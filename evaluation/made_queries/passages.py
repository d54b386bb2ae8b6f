"""Text as a document holds it: eighty words of its body, or its title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from speckit_memory.engine.answers.request import MAX_QUERY_CHARACTERS
from speckit_memory.evaluation.made_queries.collection import Collection, common, is_content, postings
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, shuffle_items

_LENGTH = 80
_LONG = 200
_SHINGLE = 8
_MOST_SHARED = 0.2
_LEAST_WORDLIKE = 0.75
_DRAWS = 3
_BATCH = 500
_PIECE = re.compile(r"\S+")
_LETTER = re.compile(r"[^\W\d_]")

Shingle = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    row: int
    text: str
    shingles: frozenset[Shingle]


def paragraphs(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Eighty words in a row from a random position of a body, as written; the document is relevant.

    Documents with 200 words or more are used first, then those with more than eighty. At most a fifth of the runs of
    eight words occur in other documents, and at least three quarters of the words contain a letter.
    """
    sizes = [len(document.text.split()) for document in collection.documents]
    long = [row for row, size in enumerate(sizes) if size >= _LONG]
    short = [row for row, size in enumerate(sizes) if _LENGTH < size < _LONG]
    order = [row for rows in (long, short) for _ in range(_DRAWS) for row in shuffle_items(rows, random)]
    # in batches, so that one pass over the collection checks many drafts
    for start in range(0, len(order), _BATCH):
        drafts = [_draft(collection, row, random) for row in order[start : start + _BATCH]]
        yield from _own(collection, [draft for draft in drafts if draft is not None])


def _draft(collection: Collection, row: int, random: Random) -> _Draft | None:
    """A passage of a document, None when it is hardly text."""
    body = collection.documents[row].text
    pieces = list(_PIECE.finditer(body))
    # randrange excludes its end: the last start leaves exactly _LENGTH words.
    start = random.randrange(len(pieces) - _LENGTH + 1)
    chosen = pieces[start : start + _LENGTH]
    text = body[chosen[0].start() : chosen[-1].end()]
    if (
        len(text) > MAX_QUERY_CHARACTERS
        or sum(_LETTER.search(p[0]) is not None for p in chosen) < _LEAST_WORDLIKE * _LENGTH
    ):
        return None
    return _Draft(row, text, frozenset(_shingles(folded_words(text))))


def _own(collection: Collection, drafts: list[_Draft]) -> Iterator[MadeQuery]:
    """The drafts that occur in no other document, for the most part. Reads the collection once for all of them."""
    wanted = frozenset[Shingle]().union(*(draft.shingles for draft in drafts))
    # The first document in which a shingle is met, and the shingles met in a second one.
    holders: dict[Shingle, int] = {}
    shared: set[Shingle] = set()
    for row, text in enumerate(collection.worded):
        for shingle in wanted.intersection(_shingles(text.split())):
            # a second document holds it
            if holders.setdefault(shingle, row) != row:
                shared.add(shingle)
    for draft in drafts:
        if draft.shingles and len(draft.shingles & shared) <= _MOST_SHARED * len(draft.shingles):
            yield MadeQuery(draft.text, (draft.row,))


def _shingles(words: list[str]) -> Iterable[Shingle]:
    # Shifted copies zipped: shingle i is words i to i + 7.
    return zip(*(words[offset:] for offset in range(_SHINGLE)), strict=False)


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
