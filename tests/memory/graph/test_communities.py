"""Communities: known graphs, and that they never are worse than the components."""

from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.memory.graph.communities import communities

Pairs = list[tuple[int, int]]


def found(pairs: Pairs, count: int, weights: list[float] | None = None) -> list[int]:
    ends = np.array(pairs, np.intp).reshape(-1, 2)
    strengths = np.ones(len(pairs)) if weights is None else np.array(weights)
    return list(map(int, communities(ends[:, 0], ends[:, 1], strengths, count)))


def clique(*nodes: int) -> Pairs:
    return [(one, other) for one in nodes for other in nodes if one < other]


@pytest.mark.requirement("M10.communities")
def test_small_components_are_communities_named_by_their_smallest_node() -> None:
    assert found([(0, 1), (4, 2), (3, 5)], 6) == [0, 0, 2, 3, 2, 3]
    assert found([], 0) == []


@pytest.mark.requirement("M10.communities")
def test_a_component_of_most_of_the_graph_is_divided() -> None:
    # two cliques that one link joins, and two nodes apart
    pairs = [*clique(0, 1, 2, 3), *clique(4, 5, 6, 7), (3, 4), (8, 9)]
    assert found(pairs, 10) == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8]


@pytest.mark.requirement("M10.communities")
def test_a_ring_of_cliques_falls_into_them_and_links_count_by_weight() -> None:
    ring = [pair for n in range(6) for pair in clique(*range(5 * n, 5 * n + 5))]
    ring += [(5 * n + 4, (5 * n + 5) % 30) for n in range(6)]
    assert found(ring, 30) == [5 * (n // 5) for n in range(30)]
    path = [(0, 1), (1, 2), (2, 3)]
    assert found(path, 4, [1.0, 0.01, 1.0]) == [0, 0, 2, 2]
    assert found(path, 4, [0.01, 1.0, 0.01]) != [0, 0, 2, 2]


def test_groups_have_no_less_modularity_than_a_single_group() -> None:
    random = np.random.default_rng(7)
    for _ in range(30):
        count = 12
        sources, targets = random.integers(0, count, (2, 20))
        apart = sources != targets
        sources, targets = sources[apart], targets[apart]
        weights = random.uniform(0.1, 1.0, len(sources))
        groups = communities(sources, targets, weights, count)
        matrix = np.zeros((count, count))
        np.add.at(matrix, (sources, targets), weights)
        matrix += matrix.T
        degree, total = matrix.sum(axis=1), matrix.sum()
        same = groups[:, None] == groups[None, :]
        expected = ((matrix - np.outer(degree, degree) / total) * same).sum() / total
        assert expected >= -1e-12  # a single group has 0
        assert all(groups[group] == group == np.flatnonzero(groups == group)[0] for group in set(groups.tolist()))
