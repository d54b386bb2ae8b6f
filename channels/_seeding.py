"""Seed memories found by BM25, from which other channels start; not a channel."""

from __future__ import annotations

from speckit_memory.channels.bm25 import Bm25, Bm25Params
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.lookup import MOST_SEEDING

_SEEDING = Bm25Params.model_validate({"max_terms": MOST_SEEDING})
"""The weights of the full-text channel; of a long query only the most informative words."""


def found_by_words(query: Query, limit: int, store: Store) -> Hits:
    """The `limit` best admitted memories by BM25 over title, triggers, path and body."""
    return Bm25(_SEEDING).search(query, limit, store)


def cost_of_seeds(query: Query, store: Store) -> StepCostEstimate:
    """The cost of `found_by_words`."""
    return Bm25(_SEEDING).cost(query, 0, store)
