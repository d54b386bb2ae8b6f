"""Well-connected memories among those that match the query's words."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import positions
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import cost_of_seeds, seeds_of

RELATION_WEIGHTS = {
    "caused": 1.0,
    "derived_from": 0.9,
    "enabled": 0.8,
    "contradicts": 0.7,
    "supersedes": 0.6,
    "supports": 0.5,
}


MAXIMUM_WITHOUT_EDGES = 15.0
"""Replaces the greatest degree of the store if no ranked memory has an edge."""


class DegreeParams(ChannelParams):
    """Parameters of the degree channel; the defaults are the catalogue's."""

    found: int = Field(100, ge=1, le=1000, description="Number of memories found by words that are ranked by degree.")
    max_degree: float = Field(50.0, gt=0, le=1000, description="Upper bound of a degree; higher ones are cut to it.")
    max_boost: float = Field(0.15, gt=0, le=1, description="Score of the best connected memory.")


class Degree:
    """Ranks what BM25 finds by typed degree, Σ relation weight · edge strength over a memory's causal edges.

    The score is max_boost · log(1 + degree) / log(1 + greatest degree of the store), [0, max_boost]. Memories without
    edges and constitutional ones, whose edges say nothing about relevance, are not returned. Feature C5.
    """

    about = About(features=("C5",), gives=Scale.UNIT, costly=True)
    Params = DegreeParams

    def __init__(self, params: DegreeParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best connected admitted memories that hold a word of the query."""
        # connected: (m,) memories with edges; degrees: (m,) their weighted degrees
        connected, degrees = store.graph.degrees(RELATION_WEIGHTS)
        ranked = ~np.isin(connected, store.attributes.of_tier("constitutional"))
        connected, degrees = connected[ranked], np.minimum(degrees[ranked], self._params.max_degree)
        found = seeds_of(query, self._params.found, store).ids
        own = np.append(degrees, 0.0)[positions(found, connected)]  # the 0.0 at -1: no edge
        scores = self._params.max_boost * np.log1p(own) / np.log1p(degrees.max(initial=0.0) or MAXIMUM_WITHOUT_EDGES)
        ids, scores = found[own > 0.0], scores[own > 0.0]
        return Hits.ordered(ids, scores, Scale.UNIT, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The cost of finding the memories, and all edges."""
        return cost_of_seeds(query, store) + StepCostEstimate(edges=store.graph.edge_count)
