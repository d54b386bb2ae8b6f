"""Raises memories that are causally linked to the best rows."""

from __future__ import annotations

from math import ceil
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.store.records import Relation
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

HOPS = {"quick": 1, "auto": 2, "focused": 2, "resume": 2, "deep": 3}
RELATIONS = {Relation.SUPERSEDES.value: 1.5, Relation.CONTRADICTS.value: 0.8}
"""Multipliers along a path; relations that are not listed count 1."""


class CausalParams(SignalParams):
    """How far and how strongly the best rows raise their neighbours."""

    per_hop: float = Field(
        0.05, ge=0, le=0.5, description="Score added at distance 1.", json_schema_extra={"tunable": [0.0, 0.2]}
    )
    seed_share: float = Field(0.25, gt=0, le=1, description="Share of the pool's memories that raise neighbours.")
    max_seeds: int = Field(5, ge=1, le=50, description="Maximum number of memories that raise neighbours.")
    hops: int | None = Field(None, ge=1, le=10, description="Maximum distance; by default from the query's mode.")
    min_product: float = Field(0.1, ge=0, le=1, description="Lower bound of a path's strength.")
    max_product: float = Field(2.0, ge=1, le=10, description="Upper bound of a path's strength.")
    cap_group: str = Field("causal_session", description="Group of signals that together add at most the group's cap.")
    cap: float | None = Field(0.20, gt=0, description="Upper bound of the sum of the group's signals.")


class Causal:
    """Adds 0.05 / hops × path strength to rows that are causally linked to the best rows.

    The best quarter of the memories in the pool, at most 5, are seeds. The graph is traversed from them in both
    directions, 1 hop in quick mode, 2 in auto and 3 in deep mode. The strength of a path is the product of edge
    strength × relation multiplier (supersedes 1.5, contradicts 0.8), clamped to [0.1, 2]. A memory reached from several
    seeds gets the largest amount. Unit scale; together with `session` at most 0.20. Neighbours outside the pool are not
    added: that is the task of the graph channel. Feature F11.
    """

    about = About(features=("F11",))
    Params = CausalParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: CausalParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from its best linked seed."""
        p, parents = self._params, pool.candidates.parents
        gain = np.zeros(len(pool))
        if not len(pool) or store.graph.edge_count == 0:
            return gain
        # distinct memories, best first
        # np.unique sorts by id; sorting the first positions restores the order of rank.
        _, first = np.unique(parents[pool.order()], return_index=True)
        memories = parents[pool.order()][np.sort(first)]
        seeds = memories[: min(p.max_seeds, ceil(p.seed_share * len(memories)))]
        # found: one row per seed and neighbour; hops and product are those of the best shortest path
        found = store.graph.neighbours(np.sort(seeds), p.hops or HOPS[query.running_mode], RELATIONS)
        strength = np.clip(found.product, p.min_product, p.max_product)
        # A memory that several seeds reach gets the largest amount, not the sum.
        ids, inverse = np.unique(found.ids, return_inverse=True)
        best = np.zeros(len(ids))
        np.maximum.at(best, inverse, p.per_hop * strength / found.hops)
        linked = np.isin(parents, ids)
        # `ids` ascends and holds every linked parent, so the place is exact
        gain[linked] = best[np.searchsorted(ids, parents[linked])]
        return gain
