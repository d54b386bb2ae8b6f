"""Phrase look-up: the memories that hold words in a row, for queries with quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Ids, Lexicon, Store, TermIndex
from speckit_memory.pipeline.running.lookup import memories_with

Rows = NDArray[np.int32]
LONGEST_HUMPED = 64
"""The analyser keeps no longer identifier whole, so longer ones are not indexed next to their parts."""
Read = Callable[[Ids], Sequence[str]]
"""Returns the texts for ids of an index."""


def content_tokens(phrase: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The indexed tokens of a phrase; empty if all of its words are stop words."""
    # The analyser keeps stop words if a text has no others, but no index holds them. The added number prevents that.
    return lexicon.analyse(f"{phrase} 0")[:-1]


def memories_with_phrase(phrase: str, store: Store) -> Ids:
    """The memories that hold the words of a phrase in a row in a passage or in the title, ascending.

    Analysed words are compared: inflections, stop words in between and case make no difference. A single word may occur
    in any field; an identifier must occur as a whole. Empty for a phrase of stop words alone.
    """
    lexicon = store.lexicon
    words = phrase.split()
    found = [np.empty(0, np.int64)]
    # Camel case splits an identifier into several tokens, lower case does not: "SQLite" and "sqlite".
    for tokens in dict.fromkeys((content_tokens(phrase, lexicon), content_tokens(phrase.casefold(), lexicon))):
        if len(tokens) == 1 or (len(words) == 1 and tokens and all(token in tokens[0] for token in tokens)):
            found.append(memories_with(tokens[0], lexicon))
        elif tokens:
            chunks, titles = lexicon.index("body", "chunk"), lexicon.index("title")
            passages = _with_run(tokens, words, chunks, lexicon, lambda ids: _texts(ids, store))
            found.append(store.attributes.parents(passages))
            labelled = _with_run(tokens, words, titles, lexicon, lambda ids: _titles(ids, store))
            found.append(labelled)
    return distinct(np.concatenate(found))


def _with_run(tokens: Sequence[str], words: Sequence[str], index: TermIndex, lexicon: Lexicon, read: Read) -> Ids:
    """The entries of an index that hold these tokens in a row."""
    rows = reduce(np.intersect1d, (index.adjacent(first, second) for first, second in pairwise(tokens)))
    ids = index.ids[rows]
    if len(tokens) > 2 and len(ids):
        # Every pair occurs; only the text shows whether the pairs overlap to form the whole phrase.
        run = _joined(tokens)
        ids = ids[[run in _joined(lexicon.analyse(text)) for text in read(ids)]]
    others = index.ids[np.setdiff1d(_with_humps(words, index, lexicon), rows)]
    if not len(others):
        return ids
    spelt = re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, words)) + r"(?!\w)", re.IGNORECASE)
    return np.append(ids, others[[bool(spelt.search(text)) for text in read(others)]])


def _with_humps(words: Sequence[str], index: TermIndex, lexicon: Lexicon) -> Rows:
    """The rows that hold every word, one of them as a camel-case identifier whose parts precede the next word.

    `SQLite store` has the tokens sqlite, sq, lite, store.
    """
    tokens = [content_tokens(word.casefold(), lexicon) for word in words]
    known = [index.postings(found[0]).rows for found in tokens if found]
    rows = reduce(np.intersect1d, known)
    humped = [
        index.adjacent(found[0], first[0])
        for word, found in zip(words, tokens, strict=True)
        if len(rows) and found and len(word) <= LONGEST_HUMPED
        for place in range(2, len(word) - 1)
        if (first := content_tokens(word[:place].casefold(), lexicon))
    ]
    return np.intersect1d(rows, np.concatenate(humped)) if humped else rows[:0]


def _joined(tokens: Sequence[str]) -> str:
    """The tokens, which contain no blanks, joined with blanks around each."""
    return f" {' '.join(tokens)} "


def _texts(chunks: Ids, store: Store) -> list[str]:
    return [passage.text for passage in store.passages.passages(chunks.tolist())]


def _titles(memories: Ids, store: Store) -> list[str]:
    titles: list[str] = store.attributes.label("title", memories).tolist()
    return titles
