"""PageRank against the dense definition, and figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.memory.graph.ranking import DAMPING, pagerank
from speckit_memory.pipeline.ports import Column


def dense(sources: list[int], targets: list[int], weights: list[float], count: int) -> Column:
    """The stationary distribution by solving the linear system of the dense matrix."""
    matrix = np.zeros((count, count))
    for source, target, weight in zip(sources, targets, weights, strict=True):
        matrix[target, source] += weight
    outgoing = matrix.sum(axis=0)
    matrix[:, outgoing == 0.0] = 1.0 / count
    matrix[:, outgoing > 0.0] /= outgoing[outgoing > 0.0]
    return np.linalg.solve(np.eye(count) - DAMPING * matrix, np.full(count, (1.0 - DAMPING) / count))


@pytest.mark.requirement("M10.pagerank")
def test_a_pair_and_a_circle_have_the_ranks_of_the_definition() -> None:
    one, other = pagerank(np.array([0]), np.array([1]), np.array([1.0]), 2).tolist()
    # r0 = 0.075 + 0.425 r1, r1 = 0.075 + 0.85 r0 + 0.425 r1
    assert (one, other) == pytest.approx((0.5 / 1.425, 0.925 / 1.425))
    circle = pagerank(np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([1.0, 0.2, 0.7]), 3)
    assert circle.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.requirement("M10.pagerank")
def test_ranks_are_those_of_the_dense_system() -> None:
    random = np.random.default_rng(3)
    for _ in range(40):
        count, links = int(random.integers(1, 25)), int(random.integers(0, 60))
        sources, targets = random.integers(0, count, (2, links))
        weights = random.choice([0.0, 0.3, 0.5, 1.0], links)
        found = pagerank(sources, targets, weights, count)
        expected = dense(sources.tolist(), targets.tolist(), weights.tolist(), count)
        assert found == pytest.approx(expected, abs=1e-10)
        assert found.sum() == pytest.approx(1.0)


def test_no_nodes_have_no_ranks() -> None:
    assert pagerank(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0), 0).tolist() == []
