"""Moves constitutional memories, or the hits of certain channels, to the top."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.arithmetic import best_of
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class PinParams(Params):
    """The rows that are pinned."""

    tiers: list[str] = Field(["constitutional"], description="Tiers that are moved above all others.")
    max_memories: int = Field(
        5,
        ge=1,
        le=100,
        description="Maximum number of pinned memories of these tiers; never more than half of the limit.",
    )
    channels: list[str] = Field([], description="Ids of channels whose hits are moved above all others.")


class Pin:
    """Moves memories of certain tiers, or the hits of certain channels, above all others.

    All pinned rows are raised by the same amount, which puts the lowest of them 1 above the best other row; among
    themselves they keep their order. If they already lead by that much, nothing changes. The lift is part of the score
    and is shown in the explanation. Of the tiers at most 5 rows are lifted, the most relevant ones, and at most half of
    the requested rows; the others are ranked by relevance. The channels `constitutional`, `identifier` and `surface`
    add these memories to the pool. Feature C6.
    """

    about = About(features=("C6",), widens=True)
    Params = PinParams

    def __init__(self, params: PinParams) -> None:
        self._tiers = tuple(params.tiers)
        self._max_memories = params.max_memories
        self._channels = frozenset(params.channels)

    @classmethod
    def check(cls, params: PinParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The channels are declared."""
        return context.undeclared(((("channels", place), channel) for place, channel in enumerate(params.channels)))

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The lifted scores."""
        pinned = np.zeros(len(pool), np.bool_)
        if self._tiers:
            of_tier = any_of(store.attributes.label("tier", pool.ids), self._tiers)
            # the pool is in total order, so the first rows of the tiers are the most relevant ones
            pinned |= of_tier & (np.cumsum(of_tier) <= query.whatever_is_asked(self._max_memories))
        pinned |= np.isfinite(best_of(pool.candidates.raw, pool.candidates.channels, self._channels))
        if pinned.all() or not pinned.any():
            return Rescored.by(pool.score, "before")
        # NaN for rows that are not pinned, so the second formula applies to them.
        lift = max(0.0, pool.score[~pinned].max() - pool.score[pinned].min() + 1.0)
        return Rescored.by(pool.score, "before + lift", "before", lift=np.where(pinned, lift, np.nan))
