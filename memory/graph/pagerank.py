"""PageRank over weighted edges (feature M10, N2; Page, Brin, Motwani and Winograd 1999)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

DAMPING = 0.85
TOLERANCE = 1e-12
"""The iteration ends when the ranks together change by less."""
MOST_STEPS = 200
"""0.85 to this power is below the tolerance."""


def pagerank(sources: NDArray[np.intp], targets: NDArray[np.intp], weights: Column, count: int) -> Column:
    """The rank of each of `count` nodes, of sum 1: rank flows from sources to targets in proportion to the weights.

    Nodes without outgoing weight give theirs to all in equal parts. By power iteration over a sparse matrix.
    """
    from scipy.sparse import csr_array  # loads for longer than small graphs take

    if not count:
        return np.empty(0)
    outgoing = np.bincount(sources, weights, count)
    share = np.divide(weights, outgoing[sources], out=np.zeros(len(weights)), where=outgoing[sources] > 0.0)
    flow = csr_array((share, (targets, sources)), shape=(count, count))
    stuck = outgoing <= 0.0
    ranks = np.full(count, 1.0 / count)
    for _ in range(MOST_STEPS):
        before = ranks
        ranks = DAMPING * (flow @ before + before[stuck].sum() / count) + (1.0 - DAMPING) / count
        if np.abs(ranks - before).sum() < TOLERANCE:
            break
    return np.asarray(ranks / ranks.sum())
