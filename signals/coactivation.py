"""Raises memories that resemble the best rows."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

_DIGITS = 7


class CoactivationParams(SignalParams):
    """How far activation spreads, and its weight."""

    weight: float = Field(
        0.25, ge=0, le=1, description="Score added at full activation.", json_schema_extra={"tunable": [0.0, 0.5]}
    )
    seeds: int = Field(5, ge=1, le=50, description="Number of best memories that spread activation.")
    related: int = Field(5, ge=1, le=50, description="Maximum number of related memories that a source activates.")
    min_similarity: float = Field(0.70, ge=0, le=1, description="Minimum cosine of two related memories.")
    hops: int = Field(2, ge=1, le=5, description="Maximum distance of activation.")
    decay: float = Field(0.5, ge=0, le=1, description="Share of the activation that each hop passes on.")
    max_memories: int = Field(20, ge=1, le=200, description="Maximum number of activated memories.")


class Coactivation:
    """Spreads activation from the 5 best memories to similar memories of the pool.

    Activation spreads breadth first over 2 hops. A source passes its activation × 0.5 × similarity / √(number of its
    related memories) to its 5 most similar memories of cosine 0.70 or more: the divisor keeps hubs from raising
    everything. A memory keeps the largest activation that reaches it, seeds gain from each other, and the 20 most
    activated memories get 0.25 × activation. Seeds start with activation 1. Unit scale, in [0, weight · decay]. Feature
    F12.
    """

    about = About(features=("F12",))
    Params = CoactivationParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: CoactivationParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The gain of each row from similar memories."""
        p = self._params
        if store.vectors.dimensions == 0:
            return Unavailable("the store holds no vectors")
        best_first = pool.candidates.parents[pool.order()]
        memories, first, inverse = np.unique(best_first, return_index=True, return_inverse=True)
        # passed: (memories, memories), the share of activation from row to column
        passed = p.decay * self._links(store.vectors.vectors(memories).astype(np.float64))
        reached, wave = np.zeros(len(memories)), np.zeros(len(memories))
        # first: the place of each memory's best row, so the lowest are those of the best memories
        wave[np.argsort(first)[: p.seeds]] = 1.0
        for _ in range(p.hops):
            # the strongest source counts, not the sum of all
            wave = (wave[:, None] * passed).max(axis=0, initial=0.0)
            reached = np.maximum(reached, wave)
        # Beyond the limit, the least activated memories (ties: higher ids) get nothing.
        reached[np.lexsort((memories, -reached))[p.max_memories :]] = 0.0
        gain = np.empty(len(pool))
        gain[pool.order()] = p.weight * reached[inverse]
        return gain

    def _links(self, vectors: Column) -> Column:
        """similarity / √fan from each memory to each of its related ones, 0 elsewhere, float64[n, n]."""
        p = self._params
        similarity = np.round(np.clip(vectors @ vectors.T, 0.0, 1.0), _DIGITS)
        np.fill_diagonal(similarity, 0.0)
        similarity[similarity < p.min_similarity] = 0.0
        # (n, related): the most similar memories of each row; ties go to the lower index
        closest = np.argsort(-similarity, axis=1, kind="stable")[:, : p.related]
        links = np.zeros_like(similarity)
        np.put_along_axis(links, closest, np.take_along_axis(similarity, closest, axis=1), axis=1)
        fan = np.maximum(np.count_nonzero(links, axis=1), 1)
        return np.asarray(links / np.sqrt(fan)[:, None])
