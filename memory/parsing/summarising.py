"""The sentences that say most of what a document says (features I11 and R8).

Sentences that share words with many others of the same text are about what the text is about (TextRank, Mihalcea and
Tarau 2004, over cosines of log frequencies as in LexRank). Nothing is written anew, no model is asked, and nothing
depends on other documents: a summary holds as long as its text does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from speckit_memory.memory.parsing.markdown.anchors import without_tags
from speckit_memory.memory.parsing.markdown.markdown import Block, blocks
from speckit_memory.pipeline.ports import Column

MOST_SENTENCES = 3
SHORTEST, LONGEST = 10, 500
"""Characters of a sentence that may stand for a text."""
ROOM = 600
"""Characters of a summary altogether."""
LOOKED_AT = 300
"""So many sentences are compared with one another; what a text is about stands in its first ones."""
READ = 200_000
"""Characters of a text that are looked at."""
ALIKE = 0.8
"""A sentence of which a taken one has this share of the words, or the other way round, says the same."""
TELLING = 0.5
"""A sentence below this share of the mean rank says nothing of what the others are about."""
DAMPING, ROUNDS = 0.85, 30

_MARKS = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+)?")
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])")
_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*+]|\d+[.)])\s)")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ADORNED = re.compile(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")


def summary(title: str, body: str, tokens: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """Up to three sentences of a text, in its order; none where it has hardly more than these.

    `tokens` makes the words that are compared, of text in any language.
    """
    said = list(_limited(sentences(body[:READ])))
    if len(said) <= MOST_SENTENCES:
        return ()
    bags = [Counter(tokens(sentence)) for sentence in said]
    ranks = _ranks(_cosines(bags), _shares(set(tokens(title)), bags))
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
    """The sentences of a text in order, without marks of Markdown; headings, code and tables are none."""
    for block, following in pairwise(chain(blocks(text), [Block(len(text))])):
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
    """How near each sentence is to each other one, by the words that at least two of them have."""
    held = Counter(word for bag in bags for word in bag)
    places = {word: at for at, word in enumerate(word for word, count in held.items() if count > 1)}
    matrix = np.zeros((len(bags), max(1, len(places))))
    for row, bag in enumerate(bags):
        for word, weight in _weighted(bag).items():
            if word in places:
                matrix[row, places[word]] = weight * math.log(1 + len(bags) / held[word])
    norms = np.sqrt((matrix**2).sum(axis=1, keepdims=True))
    matrix /= np.where(norms > 0, norms, 1.0)
    near: Column = (matrix @ matrix.T).round(9)
    np.fill_diagonal(near, 0.0)
    return near


def _shares(title: set[str], bags: Sequence[Counter[str]]) -> Column:
    """The share of the title's words that each sentence has."""
    return np.array([sum(word in bag for word in title) / max(1, len(title)) for bag in bags])


def _ranks(near: Column, about: Column) -> Column:
    """The rank of each sentence; who begins anew begins near the title and at the beginning."""
    number = len(near)
    start = (0.1 + about) / (1.0 + np.arange(number) / 10.0)
    start /= start.sum()
    sums = near.sum(axis=1, keepdims=True)
    flow = np.where(sums > 0, near / np.where(sums > 0, sums, 1.0), 1.0 / number)
    rank = start.copy()
    for _ in range(ROUNDS):
        rank = (1 - DAMPING) * start + DAMPING * (rank @ flow)
    return rank.round(9)
