"""Pseudo-relevance feedback: expands the query with weighted words of its first hits. Used by BM25; not a channel."""

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
"""The weight of each word of a query."""


class Feedback(Params):
    """Parameters of pseudo-relevance feedback: the model, how many words it takes, and from how many hits."""

    model: Literal["none", "rm3", "bo1"] = Field(
        default="none", description="Relevance model RM3, divergence from randomness Bo1, or no feedback."
    )
    documents: int = Field(default=10, ge=1, le=50, description="Number of first hits from which words are taken.")
    terms: int = Field(default=20, ge=1, le=100, description="Maximum number of words added to the query.")
    weight: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="rm3: share of the added words in the new query. bo1: weight of the best added word.",
    )
    min_lead: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Share of its score by which the first hit must lead the second; otherwise there is no feedback.",
    )


def with_feedback(params: Feedback, asked: Mapping[str, float], hits: Hits, store: Store) -> Weights | None:
    """The expanded query: its words and words of its first hits, with weights. None if the hits cannot be trusted.

    If several hits are equally good, some of them are wrong and their words would mislead: the first hit must lead. A
    hit contributes its title and its matched passage (the first passage if it names none). Words that only one memory
    holds are left out, since they could lift no other. The weights add up to those of the query's words, so that scores
    keep their size. Feature C12.

    rm3: (1 - weight) · P(w | query) + weight · P(w | hits), with P(w | hits) = Σ score · tf / length over the hits,
    normalised over the best `terms` words (Lavrenko and Croft 2001, Abdul-Jaleel and others 2004). bo1: the query's own
    weights plus weight · B(w) / max B, with B(w) = tf · log2((1 + m)/m) + log2(1 + m), tf over the hits and m the mean
    frequency of w in a memory (Amati 2003).

    Args:
        params: The feedback model and its limits.
        asked: The words of the query with their weights.
        hits: The hits of the first search, best first.
        store: The store from which the words of the hits are read.
    """
    if not len(hits) or (len(hits) > 1 and hits.scores[0] * (1.0 - params.min_lead) < hits.scores[1]):
        return None
    index = store.lexicon.index("body")
    bags = _bags(hits, params.documents, store)
    scores = hits.scores[: len(bags)]
    worth = _rm1(bags, scores) if params.model == "rm3" else _bo1(bags, index)
    best = sorted(((-value, word) for word, value in worth.items()))
    # A word that a single memory holds would only lift the memory it came from.
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
    """The word counts of each of the first hits."""
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
    """The information of each word in bits: how much more often it occurs in the hits than by chance (Bo1)."""
    total: Counter[str] = sum(bags, Counter())
    worth: Weights = {}
    for word, count in total.items():
        # frequency of the word in the collection, and its mean per memory
        occurrences = float(index.postings(word).frequency.sum())
        if occurrences:
            mean = occurrences / index.count
            worth[word] = float(count * np.log2((1.0 + mean) / mean) + np.log2(1.0 + mean))
    return worth
