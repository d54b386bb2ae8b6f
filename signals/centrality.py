"""Raises memories that are central in the causal graph."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class CentralityParams(SignalParams):
    """The gain of the most central memory of a store."""

    weight: float = Field(
        0.05,
        ge=0,
        le=0.5,
        description="Score added to the highest ranked memory of the store.",
        json_schema_extra={"tunable": [0.0, 0.2]},
    )


class Centrality:
    """Adds up to 0.05 to memories that are central in the causal graph, by PageRank.

    The amount is weight · log(1 + rank) / log(1 + greatest rank of the store); ranks are multiples of the mean, so that
    a memory without edges gains nothing. Ranks are computed in the background, and only if the store has an edge per
    memory (shown by `memory_health`): otherwise nothing is added. Unit scale, in [0, weight]. Feature M10.
    """

    about = About(features=("M10",))
    Params = CentralityParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: CentralityParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The gain of each row."""
        ranks, greatest = store.graph.ranks(pool.candidates.parents)
        if greatest <= 0.0:
            return np.zeros(len(pool))
        return np.asarray(self._params.weight * np.log1p(np.minimum(ranks, greatest)) / np.log1p(greatest))
