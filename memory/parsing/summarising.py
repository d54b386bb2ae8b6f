"""Summarises a document by extracting its most central sentences (features I11 and R8).

Sentences that share words with many others of the text express its subject (TextRank, Mihalcea and Tarau 2004, over
cosines of log frequencies as in LexRank). No text is generated, no model is used, and nothing depends on other
documents: a summary is valid as long as its text is unchanged.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from speckit_memory.memory.parsing.markdown.anchors import without_tags
from speckit_memory.memory.parsing.markdown.markdown import MarkdownBlock, blocks
from speckit_memory.pipeline.ports import Column

MOST_SENTENCES = 3
SHORTEST, LONGEST = 10, 500
"""Characters of a sentence that may be part of a summary."""
ROOM = 600
"""Characters of a whole summary."""
LOOKED_AT = 300
"""Sentences compared with one another, from the start of the text, which usually states its subject."""
READ = 200_000
"""Characters read of a text."""
ALIKE = 0.8
"""Share of common words, relative to the shorter sentence, from which two sentences are redundant."""
TELLING = 0.5
"""Share of the mean rank below which a sentence is off the subject."""
DAMPING, ROUNDS = 0.85, 30

_MARKS = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+)?")
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])")
_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*+]|\d+[.)])\s)")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ADORNED = re.compile(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")


def summary(title: str, body: str, tokens: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Return up to three sentences of a text, in text order; none if it has no more sentences than that.

    `tokens` splits text in any language into the words that are compared.
    """
    said = list(_limited(sentences(body[:READ])))
    if len(said) <= MOST_SENTENCES:
        return ()
    bags = [Counter(tokens(sentence)) for sentence in said]
    ranks = _ranks(_cosines(bags), _shares(set(tokens(title)), bags))
    # By rank descending, then by position; lexsort sorts by the last key first.
    order = np.lexsort((np.arange(len(said)), -ranks))
    taken: list[int] = []
    room = ROOM
    for at in order[ranks[order] * len(said) >= TELLING].tolist():
        if len(said[at]) <= room and all(_overlap(bags[at], bags[other]) < ALIKE for other in taken):
            taken.append(at)
            room -= len(said[at]) + 1
        if len(taken) == MOST_SENTENCES:
            break
    return tuple(said[at] for at in sorted(taken))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without Markdown markup; headings, code and tables are skipped."""
    for block, following in pairwise(chain(blocks(text), [MarkdownBlock(len(text))])):
        if block.kind != "text":
            continue
        piece = without_tags(text[block.start : following.start])
        if piece.startswith(("    ", "\t")):  # indented code
            continue
        for item in _ITEM.split(piece):
            for sentence in _END.split(" ".join(_MARKS.sub("", item).split())):
                yield _ADORNED.sub("", _LINK.sub(r"\1", sentence)).strip()


def _limited(every: Iterator[str]) -> Iterator[str]:
    known: set[str] = set()
    for sentence in every:
        if SHORTEST <= len(sentence) <= LONGEST and sentence not in known and not sentence.endswith(":"):
            known.add(sentence)
            yield sentence
        if len(known) == LOOKED_AT:
            return


def _overlap(first: Counter[str], second: Counter[str]) -> float:
    return len(first.keys() & second.keys()) / max(1, min(len(first), len(second)))


def _weighted(words: Counter[str]) -> dict[str, float]:
    return {word: 1.0 + math.log(count) for word, count in words.items()}


def _cosines(bags: Sequence[Counter[str]]) -> Column:
    """Return the cosine similarities of sentences, shape (n, n), over the words in at least two; 0 on the diagonal."""
    # weight of a word: (1 + ln tf) · ln(1 + n / df); matrix: (n, words) float64, rows of length one
    held = Counter(word for bag in bags for word in bag)
    places = {word: at for at, word in enumerate(word for word, count in held.items() if count > 1)}
    matrix = np.zeros((len(bags), max(1, len(places))))
    for row, bag in enumerate(bags):
        for word, weight in _weighted(bag).items():
            if word in places:
                matrix[row, places[word]] = weight * math.log(1 + len(bags) / held[word])
    norms = np.sqrt((matrix**2).sum(axis=1, keepdims=True))
    matrix /= np.where(norms > 0, norms, 1.0)
    # Rounded, so that results do not depend on the BLAS library.
    near: Column = (matrix @ matrix.T).round(9)
    np.fill_diagonal(near, 0.0)
    return near


def _shares(title: set[str], bags: Sequence[Counter[str]]) -> Column:
    """Return the share of the title's words in each sentence, shape (n,)."""
    return np.array([sum(word in bag for word in title) / max(1, len(title)) for bag in bags])


def _ranks(near: Column, about: Column) -> Column:
    """Return the rank of each sentence, shape (n,): PageRank with restarts at title words and early sentences."""
    # r = (1 - d)·start + d·(r @ flow); flow: (n, n), rows sum to one; a sentence without neighbours links to all
    number = len(near)
    start = (0.1 + about) / (1.0 + np.arange(number) / 10.0)
    start /= start.sum()
    sums = near.sum(axis=1, keepdims=True)
    flow = np.where(sums > 0, near / np.where(sums > 0, sums, 1.0), 1.0 / number)
    rank = start.copy()
    for _ in range(ROUNDS):
        rank = (1 - DAMPING) * start + DAMPING * (rank @ flow)
    return rank.round(9)
