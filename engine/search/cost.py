"""Estimates what a pipeline would read for a query, from the inverted indexes, without searching."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.ports import Scope, Store
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.composition import BoundStep
from speckit_memory.pipeline.roles.contracts import Channel, Reranker
from speckit_memory.pipeline.roles.hooks import COST


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Counts over all query variants. Those that depend on retrieved rows are upper bounds, and named so.

    See `pipeline.model.costs.StepCostEstimate` for the meaning of each; SQLite's full-text index counts as one index.
    """

    memories_in_scope: int
    postings: int
    vectors: int
    edges_at_most: int
    feedback_words_at_most: int
    candidates_at_most: int
    passages_compared_at_most: int
    cross_encoder_pairs_at_most: int


def work(
    wordings: Iterable[Query],
    channels: Iterable[tuple[BoundStep[Channel], int]],
    rerank: Iterable[BoundStep[Reranker]],
    scope: Scope,
    store: Store,
) -> SearchCost:
    """The work of the channels for each query variant, and of the rerankers.

    Args:
        wordings: The query variants.
        channels: The channels, each with its limit of hits.
        rerank: The rerankers.
        scope: The memories that the filters admit.
        store: The store.
    """
    cost, hits, query = StepCostEstimate(), 0, None
    asked = tuple(channels)
    for query in wordings:
        for channel, limit in asked:
            hits += limit
            cost += _cost(channel.component, query, limit, store)
    # an upper bound: there are no more candidates than hits, or than passages in the store
    candidates = min(hits, int(np.count_nonzero(store.lexicon.index("body", "chunk").ids >= 0)))
    if query is not None:
        for step in rerank:
            cost += _cost(step.component, query, candidates, store)
    return SearchCost(
        memories_in_scope=scope.size,
        postings=cost.postings,
        vectors=cost.vectors,
        edges_at_most=cost.edges,
        feedback_words_at_most=cost.feedback_words,
        candidates_at_most=candidates,
        passages_compared_at_most=cost.compared_passages,
        cross_encoder_pairs_at_most=cost.read_pairs,
    )


def _cost(component: object, query: Query, rows: int, store: Store) -> StepCostEstimate:
    """The estimate of a component; zero if it has none, or fails."""
    estimate = COST.of(component)
    if estimate is None:
        return StepCostEstimate()
    found, _ = call_guarded(lambda: estimate.cost(query, rows, store))
    return found if type(found) is StepCostEstimate else StepCostEstimate()
