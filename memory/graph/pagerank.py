"""PageRank over weighted edges (feature M10, N2; Page, Brin, Motwani and Winograd 1999)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

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
    share = np.divide(weights, outgoing[sources], out=np.zeros(len(weights)), where=outgoing[sources] > 0.0)
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
