"""Memories that were made when the question says."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Mask, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import holders, information_held


class DatedParams(ChannelParams):
    """How much a time counts."""

    topical: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Score of a memory of that time where the question has a topic as well.",
        json_schema_extra={"tunable": [0.05, 1.0]},
    )
    ordered: int = Field(20, ge=1, le=1000, description="So many of the newest, or oldest, are put in that order.")


class Dated:
    """Memories made in the spans of time that the question names, or the newest of those that it asks for.

    Where the question asks for nothing but the time, all of them score 1. Where it has a topic, they score `topical`,
    and those come first that hold the largest share of the topic's information. The newest, or oldest, are looked for
    among the memories that hold every word of the topic, in their titles if there are such; they score 1, 1/2,
    1/3 and so on. What times a question names is read by the step `times`. Feature C2.
    """

    about = About(features=("C2",), gives=Scale.UNIT)
    Params = DatedParams

    def __init__(self, params: DatedParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories that suit the time, and of these the topic, best."""
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
        held = information_held(topic, ids, store.lexicon, store.attributes.count)
        best = np.lexsort((ids, -held))[:limit]
        return Hits.ordered(ids[best], self._params.topical * (0.5 + 0.5 * held[best]), Scale.UNIT, limit=limit)


def _inside(times: tuple[tuple[float, float], ...], made: Column) -> Mask:
    """Which of these moments lie in one of the spans."""
    inside: Mask = np.logical_or.reduce([(first <= made) & (made < last) for first, last in times])
    return inside


def _about(topic: tuple[str, ...], ids: Ids, store: Store) -> Ids:
    """Those that hold every term in their titles, else in any field, as ordered; all without a topic."""
    if not topic or not len(ids):
        return ids
    titled, _ = holders(store.lexicon.index("title"), topic, ids)
    if titled.all(axis=1).any():
        return ids[titled.all(axis=1)]
    return ids[information_held(topic, ids, store.lexicon, store.attributes.count) > 1.0 - 1e-9]
