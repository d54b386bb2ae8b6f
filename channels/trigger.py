"""Memories whose trigger phrases stand in the query."""

from __future__ import annotations

import numpy as np

from speckit_memory.pipeline.contracts import About, ChannelParams
from speckit_memory.pipeline.model import Hits, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.scales import Scale

IMPORTANCE_SHARE = 0.1
"""How much the importance of a memory counts beside one matching phrase: enough to order equal matches."""


class Trigger:
    """Memories with a trigger phrase that stands in the query as a whole phrase.

    Phrases are compared after NFC and case folding, at word borders of any script. The strength of a memory is the sum
    of the weights of its matching phrases (1 for authored, 0.7 for learned ones) plus 0.1 · importance [0, 1]; signals
    in the query's wording (feature C16) raise the importance, at most to 1. The score is s / (1 + s), (0, 1).
    Features C7, C16.
    """

    about = About(features=("C7", "C16"), gives=Scale.UNIT)
    Params = ChannelParams

    def __init__(self, params: ChannelParams) -> None:
        pass

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories whose phrases match best."""
        matched, weights = store.triggers.matches(query.reading, query.now)
        if not len(matched):
            return Hits(matched, weights, Scale.UNIT)
        ids, row = np.unique(matched, return_inverse=True)
        strength = np.bincount(row, weights=weights, minlength=len(ids)).astype(np.float64)
        importance = np.nan_to_num(store.attributes.number("importance_weight", ids))
        strength += IMPORTANCE_SHARE * np.minimum(importance + query.plan.importance_boost, 1.0)
        kept = store.attributes.scope(query.wanted, query.now).admits(ids)
        return Hits.ordered(ids[kept], (strength / (1.0 + strength))[kept], Scale.UNIT, limit=limit)
