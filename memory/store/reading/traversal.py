"""Walks over the causal graph (features M8, F11, C5).

Every walk is one recursive query over distinct (seed, memory, distance) rows, so that cycles end at the limit of hops
and the work grows with the number of memories, not with the number of paths. The products of edge weights are computed
afterwards: SQLite allows no aggregate within a recursion, and without one the query would follow every path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.pipeline.ports import Column, Ids, Neighbours

MOST_HOPS = 10

# ?1 seeds, ?2 hops. Edges are followed from either end.
# Rows are the edges of the memories reached: (seed, near memory, far memory, distance of the near one, edge, …).
# CROSS JOIN keeps the order of the join: memories first, then their edges by an index.
_WALK = """
WITH RECURSIVE
reach (seed, id, hop) AS (
    SELECT value, value, 0 FROM carray(?1)
    UNION
    SELECT r.seed, iif(e.source_id = r.id, e.target_id, e.source_id), r.hop + 1
    FROM reach r JOIN causal_edges e ON e.source_id = r.id OR e.target_id = r.id
    WHERE r.hop < ?2
),
distance (seed, id, hop) AS MATERIALIZED (SELECT seed, id, min(hop) FROM reach GROUP BY seed, id)
SELECT n.seed AS seed, n.id, e.target_id AS far, n.hop AS near_hop, e.id AS edge, e.relation, e.strength
FROM distance n CROSS JOIN causal_edges e ON e.source_id = n.id
WHERE n.hop < ?2
UNION ALL
SELECT n.seed, n.id, e.source_id, n.hop, e.id, e.relation, e.strength
FROM distance n CROSS JOIN causal_edges e ON e.target_id = n.id
WHERE n.hop < ?2
ORDER BY near_hop, seed, far, edge
"""

# The same for one hop, which needs no recursion. ?1 seeds.
_STEP = """
SELECT s.value AS seed, s.value, e.target_id AS far, 0, e.id AS edge, e.relation, e.strength
FROM carray(?1) s CROSS JOIN causal_edges e ON e.source_id = s.value
UNION ALL
SELECT s.value, s.value, e.source_id, 0, e.id, e.relation, e.strength
FROM carray(?1) s CROSS JOIN causal_edges e ON e.target_id = s.value
ORDER BY seed, far, edge
"""


def neighbours(
    connection: Connection, seeds: Sequence[int] | Ids, hops: int, relation_weights: Mapping[str, float]
) -> Neighbours:
    """Finds the memories around seeds along edges in either direction.

    Args:
        connection: A connection to the store.
        seeds: Ids of the memories where walks start.
        hops: Largest distance, 1 to 10.
        relation_weights: Weight by relation, 1 for relations not in it.

    Returns:
        Each (seed, memory) pair by seed, then id, without the seeds themselves as memories: the shortest distance in
        `hops`, and in `product` the largest Π strength × relation weight over the paths of that length.

    Raises:
        SpeckitError: E032 for hops out of range.
    """
    own = sorted({int(seed) for seed in seeds})
    best: dict[tuple[int, int], tuple[int, float]] = {(seed, seed): (0, 1.0) for seed in own}
    for seed, near, far, distance, _, relation, strength in _walk(connection, own, hops):
        # Edges are sorted by distance, so that the product of the near end is already final (breadth-first order).
        product = best[seed, near][1] * strength * relation_weights.get(relation, 1.0)
        known = best.get((seed, far))
        if known is None or (known[0] == distance + 1 and product > known[1]):
            best[seed, far] = distance + 1, product
    reached = sorted((pair, found) for pair, found in best.items() if pair[1] not in own)
    return Neighbours(
        seeds=np.array([pair[0] for pair, _ in reached], np.int64),
        ids=np.array([pair[1] for pair, _ in reached], np.int64),
        hops=np.array([hop for _, (hop, _) in reached], np.int32),
        product=np.array([product for _, (_, product) in reached], np.float64),
    )


def degrees(connection: Connection, relation_weights: Mapping[str, float]) -> tuple[Ids, Column]:
    """Ids of the memories with an edge, ascending, and Σ weight × strength over the edges of each (feature C5).

    A relation without a weight has weight 1.
    """
    edges = rows(
        connection,
        "SELECT source_id, target_id, relation, strength FROM causal_edges ORDER BY source_id, target_id, relation",
    )
    # ends: (edges, 2) int64, both ends of each edge; each weight counts once per end
    ends = np.array([row[:2] for row in edges], np.int64).reshape(-1, 2)
    weights = np.array([relation_weights.get(row[2], 1.0) * row[3] for row in edges], np.float64)
    # places: (edges, 2), the index in ids of each end; bincount sums the weights by it
    ids, places = np.unique(ends, return_inverse=True)
    return ids, np.bincount(places.ravel(), np.repeat(weights, 2), len(ids)).astype(np.float64)


def _walk(connection: Connection, seeds: list[int], hops: int) -> list[tuple[int, int, int, int, int, str, float]]:
    """Rows (seed, near memory, far memory, distance of the near one, edge, relation, strength), by distance."""
    _check_hops(hops)
    if hops == 1:
        return rows(connection, _STEP, (integers(seeds),))
    return rows(connection, _WALK, (integers(seeds), hops))


def _check_hops(hops: int) -> None:
    if not 1 <= hops <= MOST_HOPS:
        raise SpeckitError.of([out_of_range("hops", hops, f"1 to {MOST_HOPS}")])
