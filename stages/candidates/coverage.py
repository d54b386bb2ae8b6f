"""An early look at how much the causal graph knows about a query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field

from pipeline.contracts import About, Params
from pipeline.model import Plan, Query
from pipeline.ports import Store

SEED_WEIGHTS = (10.0, 5.0, 2.0, 1.0)
"""Weights of title, triggers, path and body in the search for seeds (feature C2)."""


class CoverageParams(Params):
    """Parameters of the coverage check; the defaults are the catalogue's."""

    minimum: int = Field(3, ge=1, le=100, description="So many connected memories are enough.")
    seeds: int = Field(10, ge=1, le=100, description="How many memories found by full text are looked at.")


class Coverage:
    """Counts the memories that causal edges connect with what the query's words find.

    Fewer than `minimum` are an early sign that the answer will rest on text alone; the plan says so. Feature C15.
    """

    about = About(features=("C15",), costly=True)
    Params = CoverageParams

    def __init__(self, params: CoverageParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with a remark when the graph knows little."""
        scope = store.attributes.scope(query.wanted, query.now)
        seeds, _ = store.fulltext.match(query.terms, SEED_WEIGHTS, self._params.seeds, scope)
        reached = store.graph.neighbours(seeds, 1, {}).ids if len(seeds) else seeds
        connected = int(np.count_nonzero(scope.admits(np.unique(reached))))
        if connected >= self._params.minimum:
            return plan
        reason = f"coverage: evidence gap, {connected} connected memories (fewer than {self._params.minimum})"
        return replace(plan, reasons=plan.because(reason))
