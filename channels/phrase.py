"""Memories that hold the query's words in the query's order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.pipeline.arithmetic import best_of_each, distinct, idf
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store, TermIndex
from speckit_memory.pipeline.roles.contracts import About, ChannelParams

Pairs = Mapping[tuple[str, str], float]
"""Adjacent words of a query, and the share of its information in each pair."""

Rows = NDArray[np.intp]

_WORD = re.compile(r"[^\W_]+")
LONGEST_PATTERN = 64
"""Longer phrases are compared word by word: compiling and matching a regex of thousands of words takes too long."""
FEWEST_FOR_PATTERN = 20
"""For fewer texts, comparing word by word is faster than compiling a regex."""
_WHOLE = 1.0 - 1e-9
"""A text holds every pair from this share on (a sum of rounded parts)."""


class PhraseParams(ChannelParams):
    """Parameters of the phrase channel."""

    min_share: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Minimum share of the query's word pairs that a passage must hold.",
        json_schema_extra={"tunable": [0.0, 0.9]},
    )
    power: float = Field(
        8.0,
        gt=0,
        le=10,
        description="Exponent of the share: high values favour whole phrases over stray pairs.",
        json_schema_extra={"tunable": [1.0, 10.0]},
    )
    loose: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Factor for texts with all pairs but different inflections or stop words.",
    )
    max_read: int = Field(
        300, ge=0, le=10_000, description="Maximum number of texts searched for the exact words; of more, none is."
    )
    max_pairs: int = Field(
        24, ge=1, le=1000, description="Maximum number of word pairs; the most informative ones are kept."
    )


class Phrase:
    """Memories with a passage or title in which words of the query follow one another in the same order.

    Each pair of adjacent query words is weighted by the idf of both, and a text holds a share s of these weights. The
    score of a memory is s^power of its best text, (0, 1]. These are the ordered bigrams of the sequential dependence
    model (Metzler and Croft 2005), as a share instead of a sum: the exact words of a text stand out, and a sentence
    that happens to share a pair does not.

    The index holds stems and no stop words. Texts that hold all pairs are therefore read: if they contain the exact
    words of the query, the score is 1, else `loose`. A query with a single word that is not a stop word has no pairs,
    and only its exact words count. Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT, costly=True)
    Params = PhraseParams

    def __init__(self, params: PhraseParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories that hold the largest share of the query's word pairs."""
        scope = store.attributes.scope(query.wanted, query.now)
        wording = _words(query.reading)
        pairs = self._informative_pairs(query.terms, store.lexicon.index("body", "chunk"))
        found = []
        # Passages and titles are scored separately, then the best text of each memory counts.
        for index in (store.lexicon.index("body", "chunk"), store.lexicon.index("title")):
            rows, shares = _shares(pairs, index) if pairs else _holders(query.terms, index)
            # at least one pair, even with a minimum of 0
            enough = shares >= max(self._params.min_share, 1e-12)
            ids, shares = index.ids_of(rows[enough]), shares[enough]
            admitted = scope.admits(ids)
            found.append((ids[admitted], shares[admitted]))
        (chunks, in_chunks), (memories, in_titles) = found
        if not len(chunks) and not len(memories):
            return Hits(chunks, in_chunks, Scale.UNIT, passages=chunks)
        in_chunks = self._worded(in_chunks, wording, partial(_texts, chunks, store), exact_only=not pairs)
        in_titles = self._worded(in_titles, wording, partial(_titles, memories, store), exact_only=not pairs)
        # Passages come first, so that among equal scores the passage is named rather than the title.
        owners = np.concatenate([store.attributes.parents(chunks), memories])
        scores = np.concatenate([in_chunks, in_titles])
        passages = np.concatenate([chunks, np.full(len(memories), -1)])
        best = best_of_each(owners, -scores)
        ids = owners[best]
        kept = scores[best] > _undecided(scores[best], limit)
        best, ids = best[kept], ids[kept]
        return Hits.ordered(ids, scores[best], Scale.UNIT, limit=limit, passages=passages[best])

    def _informative_pairs(self, terms: Sequence[str], index: TermIndex) -> Pairs:
        """The word pairs to look for; empty if the query has fewer than two different adjacent words."""
        pairs = list(dict.fromkeys(pairwise(terms)))
        frequency = {term: index.holders(term) for term in dict.fromkeys(terms)}
        # The weight of a pair is idf(first) + idf(second), as a share of the sum over all kept pairs.
        rarity = dict(zip(frequency, idf(np.array([*frequency.values()], np.float64), index.count), strict=True))
        worth = np.array([rarity[first] + rarity[second] for first, second in pairs])
        kept = np.argsort(-worth, kind="stable")[: self._params.max_pairs].tolist()
        total = worth[kept].sum()
        return {pairs[place]: float(worth[place] / total) for place in kept}

    def _worded(
        self, shares: Column, wording: Sequence[str], read: Callable[[Rows], Iterable[str]], exact_only: bool
    ) -> Column:
        """The scores of texts with these shares of the pairs; `read` returns the texts at given rows."""
        scores = shares**self._params.power
        whole = (shares >= _WHOLE).nonzero()[0]
        if not len(whole):
            return scores
        exact = np.zeros(len(whole), np.bool_)
        # If too many texts hold all pairs, none is read and none counts as exact.
        if len(whole) <= self._params.max_read:
            in_a_row = _finder(wording, len(whole))
            exact[:] = [in_a_row(text) for text in read(whole)]
        scores[whole] = np.where(exact, 1.0, 0.0 if exact_only else self._params.loose)
        return scores


def _finder(wording: Sequence[str], texts: int) -> Callable[[str], bool]:
    """A predicate for texts that contain these words in a row; `texts` is how many will be checked."""
    if len(wording) > LONGEST_PATTERN or texts < FEWEST_FOR_PATTERN:
        sought = f" {' '.join(wording)} "
        return lambda text: sought in f" {' '.join(_words(text))} "
    joined = r"[\W_]+".join(map(re.escape, wording))
    pattern = re.compile(rf"(?<![^\W_]){joined}(?![^\W_])")
    return lambda text: pattern.search(_plain(text)) is not None


def _shares(pairs: Pairs, index: TermIndex) -> tuple[NDArray[np.int32], Column]:
    """The rows of the index that hold a pair, ascending, and the share of the pairs that each holds."""
    holding = [(index.adjacent(*pair), weight) for pair, weight in pairs.items()]
    rows = distinct(np.concatenate([of_pair for of_pair, _ in holding]))
    shares = np.zeros(len(rows))
    for of_pair, weight in holding:
        shares[rows.searchsorted(of_pair)] += weight
    return rows, shares


def _holders(terms: Sequence[str], index: TermIndex) -> tuple[NDArray[np.int32], Column]:
    """The rows of the index that hold the only term, and 1 for each."""
    rows = np.concatenate([np.empty(0, np.int32), *(index.postings(term).rows for term in terms)])
    return rows, np.ones(len(rows))


def _texts(chunks: Ids, store: Store, rows: Rows) -> list[str]:
    return [passage.text for passage in store.passages.passages(chunks[rows].tolist())]


def _titles(memories: Ids, store: Store, rows: Rows) -> list[str]:
    titles: list[str] = store.attributes.label("title", memories[rows]).tolist()
    return titles


def _undecided(scores: Column, limit: int) -> float:
    """The score at the limit, where hits would be cut by their ids alone; 0 if the limit cuts nothing.

    If many memories hold a phrase equally well, the phrase does not tell them apart.
    """
    return float(np.partition(scores, len(scores) - limit - 1)[len(scores) - limit - 1]) if len(scores) > limit else 0.0


def _words(text: str) -> list[str]:
    """The words of a text, with stop words and inflections."""
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    return (text if text.isascii() else normalize("NFKC", text)).casefold()
