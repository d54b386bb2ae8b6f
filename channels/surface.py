"""Memories that hold the query's words exactly as typed."""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Ids, Store, TermIndex
from speckit_memory.pipeline.roles.contracts import About, ChannelParams

_WORD = re.compile(r"[^\W_]+")


class SurfaceParams(ChannelParams):
    """Parameters of the surface channel."""

    max_words: int = Field(
        3,
        ge=1,
        le=100,
        description="Maximum number of words that are not stop words; a longer query finds nothing.",
        json_schema_extra={"tunable": [1, 6]},
    )
    max_phrase_words: int = Field(
        20, ge=1, le=100, description="Maximum number of words, stop words included, of a query searched as a phrase."
    )
    max_memories: int = Field(
        50, ge=2, le=1000, description="Words that this many memories hold find nothing, since they tell none apart."
    )
    max_read: int = Field(
        100_000,
        ge=0,
        le=10_000_000,
        description="A query finds nothing if its rarest word occurs in more passages and titles.",
    )


class Surface:
    """Memories that hold the words of a short query exactly as typed, with inflections and stop words.

    The other indexes hold stems and no stop words: "consumer intend" also matches intended consumption, and of "in the
    future there might" only the words future and might are left. A query of at most `max_words` words, stop words
    included, finds the memories that hold every word except stop words in its exact form. If these are too many or
    none, and for longer queries with few words that are not stop words, it finds the memories that hold the whole query
    word for word; up to `max_words` stop words alone find nothing. Words that `max_memories` or more memories hold find
    nothing. All hits score 1. A rerank step moves them to the top. Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT, costly=True)
    Params = SurfaceParams

    def __init__(self, params: SurfaceParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories with the lowest ids that hold the typed words."""
        ids = np.empty(0, np.int64) if query.concepts else self._holders(query, store)
        return Hits.ordered(ids, np.ones(len(ids)), Scale.UNIT, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The passages with the rarest word; the other words are looked for among them."""
        return StepCostEstimate(postings=_passages(query, store) if self._wordings(query, store) else 0)

    def _holders(self, query: Query, store: Store) -> Ids:
        most = self._params.max_memories
        wordings = self._wordings(query, store)
        if wordings and _passages(query, store) <= self._params.max_read:
            scope = store.attributes.scope(query.wanted, query.now)
            for phrases in wordings:
                ids = store.fulltext.holding(phrases, most, scope)
                if 0 < len(ids) < most:
                    return ids
        return np.empty(0, np.int64)

    def _wordings(self, query: Query, store: Store) -> list[list[str]]:
        """The searches to try in turn, each a list of phrases that a memory must hold together."""
        params, terms, text = self._params, frozenset(query.terms), query.reading
        words = len(_WORD.findall(text))
        telling = (word for word in text.split() if not terms.isdisjoint(store.lexicon.analyse(word)))
        # One word more than allowed is enough to see that there are too many.
        content = list(islice(telling, params.max_words + 1))
        few = words <= params.max_words
        if not 0 < len(content) <= params.max_words or (few and not any(_holders(term, store) for term in terms)):
            return []
        # First all content words in any place (short queries only), then the whole query as one phrase.
        return [content] * few + [[text]] * (1 < words <= params.max_phrase_words)


def _passages(query: Query, store: Store) -> int:
    """The number of passages and titles that hold the rarest word of a query; all of them if a word is not indexed."""
    every = sum(index.count for index in _indexes(store))
    return min((_holders(term, store) or every for term in query.terms), default=every)


def _holders(term: str, store: Store) -> int:
    return sum(index.holders(term) for index in _indexes(store))


def _indexes(store: Store) -> tuple[TermIndex, TermIndex]:
    return store.lexicon.index("body", "chunk"), store.lexicon.index("title")
