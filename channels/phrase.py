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

from speckit_memory.pipeline.arithmetic import idf
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store, TermIndex
from speckit_memory.pipeline.roles.contracts import About, ChannelParams

Pairs = Mapping[tuple[str, str], float]
"""Adjacent words of a query and the share of its information that each pair holds."""

Rows = NDArray[np.intp]

_WORD = re.compile(r"[^\W_]+")
LONGEST_PATTERN = 64
"""More words than this are compared word by word: a pattern of thousands takes long to make, and longer to match."""
FEWEST_FOR_PATTERN = 20
"""To make a pattern takes as long as comparing so many texts word by word."""
_WHOLE = 1.0 - 1e-9
"""From this share on, which is a sum of rounded parts, a text holds every pair."""


class PhraseParams(ChannelParams):
    """Parameters of the phrase channel."""

    min_share: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of the query's pairs of words below which a passage is no hit.",
        json_schema_extra={"tunable": [0.0, 0.9]},
    )
    power: float = Field(
        8.0,
        gt=0,
        le=10,
        description="Power to which the share is raised: whole phrases count, stray pairs hardly.",
        json_schema_extra={"tunable": [1.0, 10.0]},
    )
    loose: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Factor for a text that holds all pairs, but not the very words: other forms, other stop words.",
    )
    max_read: int = Field(
        300, ge=0, le=10_000, description="The very words are looked for in the text of at most so many passages."
    )
    max_pairs: int = Field(
        24, ge=1, le=1000, description="Of a query with more pairs only those that tell most are looked for."
    )


class Phrase:
    """Memories with a passage or title in which words of the query follow one another as they do in the query.

    Of the pairs of words that are adjacent in the query, each weighed by the idf of both, a text holds a share s; the
    score is s^power for the best text of the memory, (0, 1]. These are the ordered bigrams of the sequential dependence
    model (Metzler and Croft 2005), as a share instead of a sum: the exact words of a text stand out, and a sentence
    that happens to share a pair does not.

    The index knows words without their endings, and no stop words. Texts that hold all pairs are therefore read: where
    they have the very words of the query, the score is 1, else `loose`. A query with a single word that is no stop word
    has no pairs, and only the very words count. Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT, costly=True)
    Params = PhraseParams

    def __init__(self, params: PhraseParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories that hold most of the query's pairs of words."""
        scope = store.attributes.scope(query.wanted, query.now)
        wording = _words(query.reading)
        pairs = self._informative_pairs(query.terms, store.lexicon.index("body", "chunk"))
        found = []
        for index in (store.lexicon.index("body", "chunk"), store.lexicon.index("title")):
            ids = index.ids
            shares = np.zeros(len(ids))
            if pairs:
                _add_shares(shares, pairs, index)
            else:
                _mark_holders(shares, query.terms, index)
            rows = np.flatnonzero(shares >= max(self._params.min_share, 1e-12))
            rows = rows[scope.admits(ids[rows])]
            found.append((ids[rows], shares[rows]))
        (chunks, in_chunks), (memories, in_titles) = found
        in_chunks = self._worded(in_chunks, wording, partial(_texts, chunks, store), exact_only=not pairs)
        in_titles = self._worded(in_titles, wording, partial(_titles, memories, store), exact_only=not pairs)
        # Passages come first: among equals they are named.
        owners = np.append(store.attributes.parents(chunks), memories)
        scores = np.append(in_chunks, in_titles)
        passages = np.append(chunks, np.full(len(memories), -1))
        order = np.lexsort((np.arange(len(owners)), -scores, owners))
        ids, first = np.unique(owners[order], return_index=True)
        best = order[first]
        kept = scores[best] > _undecided(scores[best], limit)
        best, ids = best[kept], ids[kept]
        return Hits.ordered(ids, scores[best], Scale.UNIT, limit=limit, passages=passages[best])

    def _informative_pairs(self, terms: Sequence[str], index: TermIndex) -> Pairs:
        """The pairs to look for; none when the query has fewer than two different ones in a row."""
        pairs = list(dict.fromkeys(pairwise(terms)))
        frequency = {term: index.holders(term) for term in dict.fromkeys(terms)}
        rarity = dict(zip(frequency, idf(np.array([*frequency.values()], np.float64), index.count), strict=True))
        worth = np.array([rarity[first] + rarity[second] for first, second in pairs])
        kept = np.argsort(-worth, kind="stable")[: self._params.max_pairs].tolist()
        total = worth[kept].sum()
        return {pairs[place]: float(worth[place] / total) for place in kept}

    def _worded(
        self, shares: Column, wording: Sequence[str], read: Callable[[Rows], Iterable[str]], exact_only: bool
    ) -> Column:
        """The scores of texts with these shares of the pairs, of which `read` gives the texts at some places."""
        scores = shares**self._params.power
        whole = np.flatnonzero(shares >= _WHOLE)
        if not len(whole):
            return scores
        exact = np.zeros(len(whole), np.bool_)
        if len(whole) <= self._params.max_read:
            in_a_row = _finder(wording, len(whole))
            exact[:] = [in_a_row(text) for text in read(whole)]
        scores[whole] = np.where(exact, 1.0, 0.0 if exact_only else self._params.loose)
        return scores


def _finder(wording: Sequence[str], texts: int) -> Callable[[str], bool]:
    """Tells of so many texts whether they have these words in a row."""
    if len(wording) > LONGEST_PATTERN or texts < FEWEST_FOR_PATTERN:
        sought = f" {' '.join(wording)} "
        return lambda text: sought in f" {' '.join(_words(text))} "
    joined = r"[\W_]+".join(map(re.escape, wording))
    pattern = re.compile(rf"(?<![^\W_]){joined}(?![^\W_])")
    return lambda text: pattern.search(_plain(text)) is not None


def _add_shares(shares: Column, pairs: Pairs, index: TermIndex) -> None:
    """Adds the share of the pairs that each row of the index holds, float64[rows]."""
    for (first, second), weight in pairs.items():
        shares[index.adjacent(first, second)] += weight


def _mark_holders(shares: Column, terms: Sequence[str], index: TermIndex) -> None:
    """Puts 1 for each row that holds the only term, float64[rows]."""
    for term in terms:
        shares[index.postings(term).rows] = 1.0


def _texts(chunks: Ids, store: Store, rows: Rows) -> list[str]:
    return [passage.text for passage in store.passages.passages(chunks[rows].tolist())]


def _titles(memories: Ids, store: Store, rows: Rows) -> list[str]:
    titles: list[str] = store.attributes.label("title", memories[rows]).tolist()
    return titles


def _undecided(scores: Column, limit: int) -> float:
    """The score of hits of which the limit would keep some and not others, by their ids alone; 0 when it cuts nothing.

    Many memories that hold a phrase equally well make it a phrase that does not tell them apart.
    """
    return float(np.partition(scores, len(scores) - limit - 1)[len(scores) - limit - 1]) if len(scores) > limit else 0.0


def _words(text: str) -> list[str]:
    """The words of a text, stop words and endings included."""
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    return (text if text.isascii() else normalize("NFKC", text)).casefold()
