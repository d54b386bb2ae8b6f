"""Keeps PageRank and communities of the causal graph up to date, where the graph is dense enough (M10, N2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.graph.communities import communities
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading.density import density
from speckit_memory.memory.store.records import Relation
from speckit_memory.memory.store.tables.graph import ranks
from speckit_memory.memory.store.tables.graph.ranks import MemoryRank
from speckit_memory.pipeline.ports import Column

# the value of Brin and Page 1998
DAMPING = 0.85
TOLERANCE = 1e-12
"""The iteration ends when the sum of absolute changes is smaller."""
MOST_STEPS = 200
"""0.85 to this power is below the tolerance."""


def pagerank(sources: NDArray[np.intp], targets: NDArray[np.intp], weights: Column, count: int) -> Column:
    """The PageRank of each node, with sum 1: rank flows from sources to targets in proportion to the weights.

    Nodes without outgoing weight distribute theirs evenly. Power iteration over a sparse matrix.

    Args:
        sources: Source node of each link, (links,).
        targets: Target node of each link.
        weights: Weight of each link, >= 0.
        count: Number of nodes; they are numbered from 0.
    """
    from scipy.sparse import csr_array  # loads for longer than small graphs take

    if not count:
        return np.empty(0)
    outgoing = np.bincount(sources, weights, count)
    # share: (links,), the part of its source's rank that flows along each link
    # 0 where a source has no outgoing weight: it is `stuck`
    share = np.divide(weights, outgoing[sources], out=np.zeros(len(weights)), where=outgoing[sources] > 0.0)
    # flow: (count, count) sparse, column s the shares of source s; parallel links add up
    flow = csr_array((share, (targets, sources)), shape=(count, count))
    stuck = outgoing <= 0.0
    ranks = np.full(count, 1.0 / count)
    # r' = d (P r + Σ_stuck r / n) + (1 - d) / n, where P[t, s] is the share of the weight of s that goes to t
    for _ in range(MOST_STEPS):
        before = ranks
        ranks = DAMPING * (flow @ before + before[stuck].sum() / count) + (1.0 - DAMPING) / count
        if np.abs(ranks - before).sum() < TOLERANCE:
            break
    return np.asarray(ranks / ranks.sum())


TOWARDS_TARGET = {
    Relation.DERIVED_FROM: True,
    Relation.SUPPORTS: True,
    Relation.CAUSED: False,
    Relation.ENABLED: False,
    Relation.SUPERSEDES: False,
}
"""Whether rank flows from source to target: a memory passes rank to those it follows from, and a superseded one to its
successor. A contradiction passes none."""
_SHARED = (
    "(SELECT * FROM causal_edges WHERE source_id NOT IN (SELECT id FROM private_ids) "
    "AND target_id NOT IN (SELECT id FROM private_ids))"
)
"""SQL for the edges that everybody sees: ranks are stored for all, so private links must not show in them."""
DIGITS = 6
"""Ranks are rounded to this, so that distant changes in the graph do not rewrite them."""


@dataclass(frozen=True, slots=True)
class GraphRanking:
    """Ranks and communities from the edges at a `version`; empty if the graph is not dense."""

    version: int
    ranked: tuple[MemoryRank, ...]


def stale(connection: Connection, _now: float) -> int:
    """Number of memories to rank again, or to lose their rank as the graph has become sparse; 0 if all are valid."""
    found, known = density(connection), ranks.count(connection)
    if found.band != "dense":
        return known
    state = ranks.state(connection)
    return 0 if known and state.ranked == state.version else found.connected


def compute_ranks(connection: Connection, now: float) -> GraphRanking | None:
    """The ranks from the edges that the connection sees; None if the stored ones are valid."""
    if not stale(connection, now):
        return None
    version = ranks.state(connection).version
    if density(connection).band != "dense":
        return GraphRanking(version, ())
    return GraphRanking(version, of_edges(connection))


def write(txn: Transaction, _now: float, found: GraphRanking | None) -> int:
    """Store the computed ranks; returns the number of memories that changed."""
    return ranks.replace(txn, found.ranked, found.version) if found else 0


def of_edges(connection: Connection) -> tuple[MemoryRank, ...]:
    """Ranks and communities by memory id, from the edges that the connection sees, for any density."""
    # by key: results depend on the order of nodes, which must not be the order in which files were indexed
    edges = rows(
        connection,
        f"SELECT source_id, target_id, relation, strength FROM {_SHARED} e JOIN memories AS s ON s.id = source_id "
        "JOIN memories AS t ON t.id = target_id ORDER BY s.key, t.key, relation",
    )
    order = rows(
        connection,
        f"SELECT id FROM memories WHERE id IN (SELECT source_id FROM {_SHARED} e UNION SELECT target_id "
        f"FROM {_SHARED} f) ORDER BY key",
    )
    return rank_graph(edges, [memory for (memory,) in order])


def rank_graph(edges: list[tuple[int, int, str, float]], order: list[int]) -> tuple[MemoryRank, ...]:
    """The rank and community of every memory with an edge (source, target, relation, strength), by id.

    `order` holds the ids of these memories; it decides between equally good partitions of the graph.
    """
    if not edges:
        return ()
    memories, place = np.array(order, np.int64), {memory: number for number, memory in enumerate(order)}
    sources, targets = np.array([(place[source], place[target]) for source, target, *_ in edges], np.intp).T
    strengths = np.array([edge[3] for edge in edges], np.float64)
    relations = [Relation(edge[2]) for edge in edges]
    # Contradictions carry no rank, but connect memories into communities.
    flows = np.array([relation in TOWARDS_TARGET for relation in relations], np.bool_)
    forward = np.array([TOWARDS_TARGET.get(relation, True) for relation in relations], np.bool_)
    givers, takers = np.where(forward, sources, targets), np.where(forward, targets, sources)
    # Multiples of the mean rank, which is 1 / n.
    rank = pagerank(givers[flows], takers[flows], strengths[flows], len(memories)) * len(memories)
    groups = communities(sources, targets, strengths, len(memories))
    found = zip(order, rank.tolist(), memories[groups].tolist(), strict=True)
    return tuple(sorted(MemoryRank(memory, round(value, DIGITS), community) for memory, value, community in found))
