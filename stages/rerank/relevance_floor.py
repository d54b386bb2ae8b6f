"""Leaves out rows that are not relevant enough, even if nothing better was found."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.arithmetic import best_of
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Selected
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class RelevanceFloorParams(Params):
    """The floor and the channel it applies to."""

    channel: str = Field("vector", description="Id of the channel whose own scores are compared with the floor.")
    min_score: float = Field(0.2, description="Minimum score by that channel, on the channel's scale.")
    keep_unscored: bool = Field(True, description="Keep rows that the channel did not score.")
    ignore_tiers: list[str] = Field(["constitutional"], description="Tiers that are never left out.")


class RelevanceFloor:
    """Leaves out rows that one channel scores below a floor.

    Fused scores depend on the other results, and even the best says nothing about relevance; the scores of a channel
    (such as a cosine) mean the same for every query. So the floor applies to those: all rows may be left out, and an
    empty answer is better than an irrelevant one. A channel that searched several variants counts with its best score.
    Feature A4.
    """

    about = About(features=("A4",))
    Params = RelevanceFloorParams

    def __init__(self, params: RelevanceFloorParams) -> None:
        self._params = params
        self._ignored_tiers = tuple(params.ignore_tiers)

    @classmethod
    def check(cls, params: RelevanceFloorParams, context: PipelineContext) -> Iterable[tuple[tuple[str, ...], str]]:
        """The channel must be one of the pipeline's."""
        if params.channel not in context.channels:
            yield ("channel",), f"no channel is called '{params.channel}'; there are {', '.join(context.channels)}"

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The mask of the rows that remain."""
        p, candidates = self._params, pool.candidates
        best = best_of(candidates.raw, candidates.channels, (p.channel,))
        keep = np.where(np.isnan(best), p.keep_unscored, best >= p.min_score)
        return Selected(keep | any_of(store.attributes.label("tier", pool.ids), self._ignored_tiers))
