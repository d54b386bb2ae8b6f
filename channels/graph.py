"""Memories connected by causal edges to the best matches."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import distinct, positions
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import cost_of_seeds, seeds_of


class GraphParams(ChannelParams):
    """Parameters of the graph channel."""

    seeds: int = Field(
        10,
        ge=1,
        le=100,
        description="Number of memories found by full text from which the search starts.",
        json_schema_extra={"tunable": [3, 20]},
    )
    hops: int = Field(1, ge=1, le=3, description="Maximum number of edges followed from a seed.")


class Graph:
    """Neighbours of seed memories over causal edges in either direction.

    Seeds are found by BM25 over title, triggers, path and body with the weights of the full-text channel. A neighbour
    scores the product of the edge strengths on the path times the BM25 score of its seed; the best path counts. Seeds
    themselves are left to the lexical channels. Without edges nothing is found. Feature C4.
    """

    about = About(features=("C4",), gives=Scale.BM25, costly=True)
    Params = GraphParams

    def __init__(self, params: GraphParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best admitted neighbours."""
        if not store.graph.edge_count:
            return Hits(np.empty(0, np.int64), np.empty(0), Scale.BM25)
        scope = store.attributes.scope(query.wanted, query.now)
        seeds = seeds_of(query, self._params.seeds, store)
        if not len(seeds):
            return seeds
        walks = store.graph.neighbours(seeds.ids, self._params.hops, {})
        ids = distinct(walks.ids)
        row = ids.searchsorted(walks.ids)
        scores = np.zeros(len(ids))
        # walks: one row per (seed, neighbour); a neighbour keeps its best path
        np.maximum.at(scores, row, walks.product * seeds.scores[positions(walks.seeds, seeds.ids)])
        kept = scope.admits(ids) & (scores > 0.0)
        return Hits.ordered(ids[kept], scores[kept], Scale.BM25, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The cost of finding the seeds, and all edges once per hop."""
        edges = store.graph.edge_count
        if not edges:
            return StepCostEstimate()
        return cost_of_seeds(query, store) + StepCostEstimate(edges=edges * self._params.hops)
