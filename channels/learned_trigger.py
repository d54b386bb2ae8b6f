"""Memories with a trigger phrase that occurs in the query, declared by a document or learned from selections."""

from __future__ import annotations

from speckit_memory.channels._triggering import triggered_memories
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams


class LearnedTrigger:
    """The channel `trigger` with learned phrases added to the declared ones; it replaces that channel.

    Learned phrases are words of queries after which the user selected a result further down. They weigh 0.7 where a
    declared phrase weighs 1, in one sum per memory. Features C7, M12.
    """

    about = About(features=("C7", "M12"), gives=Scale.UNIT)
    Params = ChannelParams

    def __init__(self, params: ChannelParams) -> None:
        pass

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories whose phrases match best."""
        return triggered_memories(*store.triggers.matches(query.reading, query.now), query, limit, store)
