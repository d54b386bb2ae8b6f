"""Central memories of the communities that what the query's words find belongs to."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.channels._seeding import cost_of_seeds, found_by_words
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import Cost
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams


class CommunityParams(ChannelParams):
    """Parameters of the community channel; the defaults are those of the sources."""

    seeds: int = Field(
        5,
        ge=1,
        le=50,
        description="How many memories found by words bring their community.",
        json_schema_extra={"tunable": [1, 10]},
    )
    found: int = Field(3, ge=1, le=50, description="How many memories all communities together bring.")
    share: float = Field(0.3, gt=0, le=1, description="Share of the seed's score that a memory it brings gets.")


class Community:
    """Up to 3 memories of the communities of the best matches, which the words themselves do not find.

    Communities are connected components of the causal graph, or groups of Louvain where one component is most of it,
    computed in the background where the store has an edge per memory; elsewhere nothing is found. Of each, its highest
    ranked members come first; a memory scores 0.3 of its best seed's BM25 score. Feature M10.
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
        seeds = found_by_words(query, p.seeds, store)
        best: dict[int, float] = {}
        own = set(seeds.ids.tolist())
        for seed, score in zip(seeds.ids.tolist(), seeds.scores.tolist(), strict=True):
            for member in store.graph.community(seed, p.found + len(own)).tolist():
                if member not in own:
                    best[member] = max(best.get(member, 0.0), p.share * score)
        if not best:
            return none
        ids, scores = np.array(list(best), np.int64), np.array(list(best.values()), np.float64)
        kept = store.attributes.scope(query.wanted, query.now).admits(ids) & (scores > 0.0)
        ids, scores = ids[kept], scores[kept]
        ranks, _ = store.graph.ranks(ids)
        # equals stay in the order of the store, which does not depend on what was indexed first
        order = np.lexsort((-ranks, -scores))[: p.found]
        return Hits.ordered(ids[order], scores[order], Scale.BM25, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> Cost:  # noqa: ARG002
        """The words that find the seeds, and a look at each community."""
        return cost_of_seeds(query, store) + Cost(edges=self._params.seeds) if store.graph.edge_count else Cost()
