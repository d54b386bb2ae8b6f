"""Memories whose documents declare a trigger phrase that occurs in the query."""

from __future__ import annotations

from speckit_memory.channels._triggering import triggered_memories
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import AUTHORED, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams


class Trigger:
    """Memories with a trigger phrase that occurs in the query as a whole phrase.

    Documents declare the phrases. They are compared after NFC and case folding, at word boundaries of any script. The
    strength s of a memory is the number of its matching phrases plus 0.1 · importance [0, 1]; signals in the query's
    wording (feature C16) raise the importance, at most to 1. The score is s / (1 + s), (0, 1). Features C7, C16.
    """

    about = About(features=("C7", "C16"), gives=Scale.UNIT)
    Params = ChannelParams

    def __init__(self, params: ChannelParams) -> None:
        pass

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories whose phrases match best."""
        matched, weights = store.triggers.matches(query.reading, query.now)
        declared = weights >= AUTHORED
        return triggered_memories(matched[declared], weights[declared], query, limit, store)
