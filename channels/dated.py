"""Memories created at the time that the query names."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Mask, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import holders, information_held


class DatedParams(ChannelParams):
    """Parameters of the dated channel."""

    topical: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Score of a memory from that time if the query has a topic as well.",
        json_schema_extra={"tunable": [0.05, 1.0]},
    )
    ordered: int = Field(20, ge=1, le=1000, description="Number of newest or oldest memories returned in that order.")


class Dated:
    """Memories created in the time spans that the query names, or the newest or oldest if it asks for those.

    If the query names nothing but the time, all of them score 1. If it has a topic, they score up to `topical`, those
    first that hold the largest share of the topic's information. The newest or oldest are taken from the memories that
    hold every word of the topic, in their titles if there are such; they score 1, 1/2, 1/3 and so on. The step `times`
    reads the times from the query. Feature C2.
    """

    about = About(features=("C2",), gives=Scale.UNIT)
    Params = DatedParams

    def __init__(self, params: DatedParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best admitted memories of that time, ordered by topic."""
        plan = query.plan
        if not plan.times and not plan.order:
            return Hits.ordered(np.empty(0, np.int64), np.empty(0), Scale.UNIT, limit=limit)
        ids = store.attributes.oldest_first(store.attributes.scope(query.wanted, query.now))
        meant = {found.term: next(iter(found.instead)) for found in plan.respelt}
        topic = tuple(meant.get(term, term) for term in plan.topic or ())
        if plan.order:
            ids = _about(topic, ids, store)
            ids = (ids[::-1] if plan.order == "newest" else ids)[: self._params.ordered]
            return Hits.ordered(ids, 1.0 / np.arange(1, len(ids) + 1), Scale.UNIT, limit=limit)
        ids = ids[_inside(plan.times, store.attributes.number("created_at", ids))]
        if not topic or not len(ids):
            return Hits.ordered(ids, np.ones(len(ids)), Scale.UNIT, limit=limit)
        # Scores are in [topical / 2, topical], so that the topic orders them and they stay below 1.
        held = information_held(topic, ids, store.lexicon, store.attributes.count)
        best = np.lexsort((ids, -held))[:limit]
        return Hits.ordered(ids[best], self._params.topical * (0.5 + 0.5 * held[best]), Scale.UNIT, limit=limit)


def _inside(times: tuple[tuple[float, float], ...], made: Column) -> Mask:
    """Whether each of these moments is inside one of the spans."""
    inside: Mask = np.logical_or.reduce([(first <= made) & (made < last) for first, last in times])
    return inside


def _about(topic: tuple[str, ...], ids: Ids, store: Store) -> Ids:
    """Memories that hold every term in their titles, else in any field; all if there is no topic. Keeps the order."""
    if not topic or not len(ids):
        return ids
    titled, _ = holders(store.lexicon.index("title"), topic, ids)
    if titled.all(axis=1).any():
        return ids[titled.all(axis=1)]
    return ids[information_held(topic, ids, store.lexicon, store.attributes.count) > 1.0 - 1e-9]
