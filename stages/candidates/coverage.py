"""An early estimate of how much the causal graph covers a query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params
from speckit_memory.pipeline.running.lookup import seeds_of


class CoverageParams(Params):
    """Parameters of the coverage estimate."""

    min_memories: int = Field(3, ge=1, le=100, description="Number of connected memories that is enough.")
    seeds: int = Field(10, ge=1, le=100, description="Number of best matching memories whose neighbours are counted.")


class Coverage:
    """Counts the memories that causal edges connect with the best matches of the query's words.

    The best matches are those from which the graph channel starts. Fewer than `min_memories` neighbours are an early
    sign that the answer will rest on text alone; the plan and the answer say so. Feature C15.
    """

    about = About(features=("C15",), costly=True)
    Params = CoverageParams

    def __init__(self, params: CoverageParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with the count, and a remark if the graph covers little."""
        connected = self._connected(query, store) if store.graph.edge_count else 0
        gap = connected < self._params.min_memories
        reason = f"coverage: evidence gap, {connected} connected memories (fewer than {self._params.min_memories})"
        reasons = plan.because(reason) if gap else plan.reasons
        return replace(plan, connected=connected, graph_gap=gap, reasons=reasons)

    def _connected(self, query: Query, store: Store) -> int:
        seeds = seeds_of(query, self._params.seeds, store).ids
        if not len(seeds):
            return 0
        reached = distinct(store.graph.neighbours(seeds, 1, {}).ids)
        return int(np.count_nonzero(store.attributes.scope(query.wanted, query.now).admits(reached)))
