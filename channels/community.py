"""Central memories of the communities to which the best matches belong."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import cost_of_seeds, seeds_of


class CommunityParams(ChannelParams):
    """Parameters of the community channel; the defaults are those of the sources."""

    seeds: int = Field(
        5,
        ge=1,
        le=50,
        description="Number of memories found by words whose communities are used.",
        json_schema_extra={"tunable": [1, 10]},
    )
    found: int = Field(3, ge=1, le=50, description="Maximum number of memories from all communities together.")
    share: float = Field(0.3, gt=0, le=1, description="Share of the seed's score that a member of its community gets.")


class Community:
    """Up to 3 memories from the communities of the best matches that do not match the words themselves.

    Communities are the connected components of the causal graph, or Louvain communities if one component covers most of
    it. They are computed in the background once the store has an edge per memory; before that nothing is found. The
    highest ranked members of each community come first; a memory scores 0.3 of its best seed's BM25 score. Feature M10.
    """

    about = About(features=("M10",), gives=Scale.BM25, costly=True)
    Params = CommunityParams

    def __init__(self, params: CommunityParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The best admitted members, at most `limit`."""
        none = Hits(np.empty(0, np.int64), np.empty(0), Scale.BM25)
        if not store.graph.edge_count:
            return none
        p = self._params
        seeds = seeds_of(query, p.seeds, store)
        best: dict[int, float] = {}
        own = set(seeds.ids.tolist())
        for seed, score in zip(seeds.ids.tolist(), seeds.scores.tolist(), strict=True):
            # as many more as there are seeds, since those are left out
            for member in store.graph.community(seed, p.found + len(own)).tolist():
                if member not in own:
                    best[member] = max(best.get(member, 0.0), p.share * score)
        if not best:
            return none
        ids, scores = np.array(list(best), np.int64), np.array(list(best.values()), np.float64)
        kept = store.attributes.scope(query.wanted, query.now).admits(ids) & (scores > 0.0)
        ids, scores = ids[kept], scores[kept]
        ranks, _ = store.graph.ranks(ids)
        # Equal scores keep the order of `ids`; a stable order must not depend on which document was indexed first.
        order = np.lexsort((-ranks, -scores))[: p.found]
        return Hits.ordered(ids[order], scores[order], Scale.BM25, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The cost of finding the seeds, and one look-up per community."""
        return (
            cost_of_seeds(query, store) + StepCostEstimate(edges=self._params.seeds)
            if store.graph.edge_count
            else StepCostEstimate()
        )
