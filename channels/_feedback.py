"""The query with words of its first hits, weighted: relevance feedback without a user. Used by BM25; no channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits
from speckit_memory.pipeline.ports import Column, Store, TermIndex
from speckit_memory.pipeline.roles.contracts import Params

Weights = dict[str, float]
"""How often each word of a query counts."""


class Feedback(Params):
    """Whether words of the first hits are searched as well, and how they are weighted."""

    model: Literal["none", "rm3", "bo1"] = Field(
        default="none", description="Relevance model RM3, divergence from randomness Bo1, or no feedback."
    )
    documents: int = Field(default=10, ge=1, le=50, description="How many first hits words are taken from.")
    terms: int = Field(default=20, ge=1, le=100, description="How many of their words are searched at most.")
    weight: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="rm3: the share of their words in the new query. bo1: the weight of the best of them.",
    )
    min_lead: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="By which share of its score the first hit must be ahead of the second; else no feedback.",
    )


def with_feedback(params: Feedback, asked: Mapping[str, float], hits: Hits, store: Store) -> Weights | None:
    """The words of the query and of its first hits with their weights; None when these hits are not to be trusted.

    `asked` are the words of the query with theirs.

    Where several hits are equally good, some of them are wrong, and their words lead astray: the first one must lead.
    A hit speaks with its title and its matched passage; a memory that names none, with its first passage. Words of
    one memory alone are left out, for they could lift no other. The weights add up to those of the query's words, so
    that scores keep their size. Feature C12.

    rm3: (1 - weight) · P(w | query) + weight · P(w | hits), with P(w | hits) = Σ score · tf / length over the hits,
    normalised over the best `terms` words (Lavrenko and Croft 2001, Abdul-Jaleel and others 2004).
    bo1: the query's own weights, and weight · B(w) / max B besides, with B(w) = tf · log2((1 + m)/m) + log2(1 + m), tf
    over the hits and m the mean frequency of w in a memory (Amati 2003).
    """
    if not len(hits) or (len(hits) > 1 and hits.scores[0] * (1.0 - params.min_lead) < hits.scores[1]):
        return None
    index = store.lexicon.index("body")
    bags = _bags(hits, params.documents, store)
    scores = hits.scores[: len(bags)]
    worth = _rm1(bags, scores) if params.model == "rm3" else _bo1(bags, index)
    best = sorted(((-value, word) for word, value in worth.items()))
    shared = ((word, -value) for value, word in best if index.holders(word) > 1)
    told = list(islice(shared, params.terms))
    if not told:
        return None
    scale = sum(value for _, value in told) if params.model == "rm3" else told[0][1]
    size = sum(asked.values())
    own = (1.0 - params.weight) / size if params.model == "rm3" else 1.0
    weights = {word: own * weight for word, weight in asked.items()}
    for word, value in told:
        weights[word] = weights.get(word, 0.0) + params.weight * value / scale
    total = sum(weights.values())
    return {word: weight * size / total for word, weight in weights.items() if weight}


def _bags(hits: Hits, documents: int, store: Store) -> list[Counter[str]]:
    """The words of the first hits and how often each has them."""
    memories = hits.ids[:documents]
    titles = store.attributes.label("title", memories)
    passages = store.passages.passages(hits.matched[:documents].tolist())
    return [
        Counter(store.lexicon.analyse(f"{title}\n{passage.text}"))
        for title, passage in zip(titles, passages, strict=True)
    ]


def _rm1(bags: Sequence[Counter[str]], scores: Column) -> Weights:
    """Σ score · tf / length of each word."""
    worth: Weights = {}
    for bag, score in zip(bags, scores.tolist(), strict=True):
        share = score / max(bag.total(), 1)
        for word, count in bag.items():
            worth[word] = worth.get(word, 0.0) + share * count
    return worth


def _bo1(bags: Sequence[Counter[str]], index: TermIndex) -> Weights:
    """How much more often each word occurs in the hits than by chance, in bits."""
    total: Counter[str] = sum(bags, Counter())
    worth: Weights = {}
    for word, count in total.items():
        occurrences = float(index.postings(word).frequency.sum())
        if occurrences:
            mean = occurrences / index.count
            worth[word] = float(count * np.log2((1.0 + mean) / mean) + np.log2(1.0 + mean))
    return worth
