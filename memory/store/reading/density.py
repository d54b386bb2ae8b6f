"""Density of the causal graph (feature M9).

The feature catalogue divides the number of edges by the memories that have one. That ratio is never below 1/2, as every
edge has two ends, so no store could be called sparse. Here the divisor is the number of all memories.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows

Band = Literal["empty", "sparse", "moderate", "dense"]

MODERATE, DENSE = 0.5, 1.0
"""Lower bounds of the bands `moderate` and `dense`, in edges per memory."""


@dataclass(frozen=True, slots=True)
class Density:
    """The numbers of edges, of all memories, and of `connected` memories, which have at least one edge."""

    edges: int
    memories: int
    connected: int

    @property
    def edges_per_memory(self) -> float:
        """Mean number of edges per memory; 0 in a store without memories."""
        return self.edges / self.memories if self.memories else 0.0

    @property
    def band(self) -> Band:
        """`dense` from 1 edge per memory, `moderate` from 0.5, `sparse` below, `empty` without edges."""
        if not self.edges:
            return "empty"
        if self.edges >= DENSE * self.memories:
            return "dense"
        return "moderate" if self.edges >= MODERATE * self.memories else "sparse"

    @property
    def next_band(self) -> Band | None:
        """The band reached next by adding edges; None in the last band and in a store without memories."""
        if self.band == "dense" or not self.memories:
            return None
        if self.band == "empty":
            return Density(1, self.memories, 2).band  # with few memories, one edge is enough for more than sparse
        return "moderate" if self.band == "sparse" else "dense"

    @property
    def missing(self) -> int:
        """Number of edges missing to the next band; 0 in the last one."""
        if self.next_band is None:
            return 0
        if self.band == "empty":
            return 1
        return ceil((MODERATE if self.band == "sparse" else DENSE) * self.memories) - self.edges


def density(connection: Connection) -> Density:
    """The present density of the graph."""
    [(edges, memories, connected)] = rows(
        connection,
        "SELECT (SELECT count(*) FROM causal_edges), (SELECT count(*) FROM memories), "
        "(SELECT count(*) FROM (SELECT source_id FROM causal_edges UNION SELECT target_id FROM causal_edges))",
    )
    return Density(edges, memories, connected)


def describe_density(found: Density) -> str:
    """The density for a reader, in one sentence."""
    per = f"{found.edges_per_memory:.2f} causal edges per memory ({found.band})"
    if found.next_band is None:
        return per
    return f"{per}, {found.missing} more to {found.next_band}"


def as_fields(found: Density) -> dict[str, str | int | float | None]:
    """The density as named fields, for JSON."""
    return {
        "edges_per_memory": round(found.edges_per_memory, 4),
        "band": found.band,
        "next_band": found.next_band,
        "missing_edges": found.missing,
        "edges": found.edges,
        "memories": found.memories,
        "connected_memories": found.connected,
    }
