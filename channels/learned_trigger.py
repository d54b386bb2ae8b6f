"""Memories with a trigger phrase that stands in the query, whether a document declares it or selections taught it."""

from __future__ import annotations

from speckit_memory.channels._triggering import triggered
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams


class LearnedTrigger:
    """What the channel `trigger` finds, and learned phrases beside declared ones; it takes the place of that channel.

    Learned phrases are words of questions after which a reader took a memory from further down. They weigh 0.7 where a
    declared phrase weighs 1, in one sum: a memory that both find is found once. Features C7, M12.
    """

    about = About(features=("C7", "M12"), gives=Scale.UNIT)
    Params = ChannelParams

    def __init__(self, params: ChannelParams) -> None:
        pass

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories whose phrases match best."""
        return triggered(*store.triggers.matches(query.reading, query.now), query, limit, store)
