"""The score of matching trigger phrases, shared by the two trigger channels; not a channel."""

from __future__ import annotations

import numpy as np

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store

IMPORTANCE_SHARE = 0.1
"""The share of a memory's importance that is added to its matching phrases: enough to order equal matches."""


def triggered_memories(matched: Ids, weights: Column, query: Query, limit: int, store: Store) -> Hits:
    """The best admitted memories by the trigger phrases that occur in the query.

    The strength s of a memory is the sum of its weights plus 0.1 · importance [0, 1]; its score is s / (1 + s), (0, 1).

    Args:
        matched: The memory of each matching phrase, int64[phrases]; a memory may occur several times.
        weights: The weight of each matching phrase, float64[phrases].
        query: The query, with its filter and plan.
        limit: Maximum number of hits.
        store: The store that holds the memories.
    """
    if not len(matched):
        return Hits(matched, weights, Scale.UNIT)
    # ids: (memories,); row: (phrases,), the index into ids of each phrase's memory
    ids, row = np.unique(matched, return_inverse=True)
    strength = np.bincount(row, weights=weights, minlength=len(ids)).astype(np.float64)
    importance = np.nan_to_num(store.attributes.number("importance_weight", ids))
    strength += IMPORTANCE_SHARE * np.minimum(importance + query.plan.importance_boost, 1.0)
    kept = store.attributes.scope(query.wanted, query.now).admits(ids)
    return Hits.ordered(ids[kept], (strength / (1.0 + strength))[kept], Scale.UNIT, limit=limit)
