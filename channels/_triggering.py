"""What the two channels of trigger phrases share: how matching phrases add up."""

from __future__ import annotations

import numpy as np

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store

IMPORTANCE_SHARE = 0.1
"""How much the importance of a memory counts beside one matching phrase: enough to order equal matches."""


def triggered(matched: Ids, weights: Column, query: Query, limit: int, store: Store) -> Hits:
    """The `limit` admitted memories of which phrases with these weights stand in the query.

    Their strength s is the sum of the weights plus 0.1 · importance [0, 1], the score s / (1 + s), (0, 1).
    """
    if not len(matched):
        return Hits(matched, weights, Scale.UNIT)
    ids, row = np.unique(matched, return_inverse=True)
    strength = np.bincount(row, weights=weights, minlength=len(ids)).astype(np.float64)
    importance = np.nan_to_num(store.attributes.number("importance_weight", ids))
    strength += IMPORTANCE_SHARE * np.minimum(importance + query.plan.importance_boost, 1.0)
    kept = store.attributes.scope(query.wanted, query.now).admits(ids)
    return Hits.ordered(ids[kept], (strength / (1.0 + strength))[kept], Scale.UNIT, limit=limit)
