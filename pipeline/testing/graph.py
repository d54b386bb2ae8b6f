"""The causal graph of the fake store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from speckit_memory.pipeline.ports import Column, Ids, Neighbours
from speckit_memory.pipeline.testing.memories import Edge


class FakeGraph:
    """Implements `ports.CausalGraph`; `parent` maps every id to its memory."""

    def __init__(self, edges: Sequence[Edge], parent: dict[int, int]) -> None:
        self._edges, self._parent = edges, parent

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return len(self._edges)

    def _adjacent(self, weights: dict[str, float]) -> dict[int, list[tuple[int, float]]]:
        adjacent: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for edge in self._edges:
            value = edge.strength * weights.get(edge.relation, 1.0)
            adjacent[edge.source].append((edge.target, value))
            adjacent[edge.target].append((edge.source, value))
        return adjacent

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        """The neighbourhood of the seeds, without the seeds themselves."""
        adjacent = self._adjacent(relation_weights)
        rows: list[tuple[int, int, int, float]] = []
        start = {self._parent[int(seed)] for seed in seeds}
        for seed in sorted(start):
            reached, front = {seed: 1.0}, {seed: 1.0}
            for hop in range(1, hops + 1):
                best: dict[int, float] = {}
                for node, product in front.items():
                    for other, value in adjacent[node]:
                        if other not in reached:
                            best[other] = max(best.get(other, 0.0), product * value)
                reached |= best
                front = best
                rows += [(seed, node, hop, product) for node, product in sorted(best.items()) if node not in start]
        columns: list[tuple[float, ...]] = list(zip(*rows, strict=True)) or [(), (), (), ()]
        return Neighbours(
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.int32),
            np.array(columns[3], np.float64),
        )

    def in_edges(self, ids: Ids, relation: str) -> tuple[Ids, Ids]:
        """Sources and targets of the edges of a relation that lead to one of these memories."""
        ends = {self._parent[int(i)] for i in ids}
        pairs = sorted((e.source, e.target) for e in self._edges if e.relation == relation and e.target in ends)
        return np.array([s for s, _ in pairs], np.int64), np.array([t for _, t in pairs], np.int64)

    def regions(self, ids: Ids) -> Ids:
        """The connected component of each id, named by its smallest memory; -1 without an edge."""
        adjacent = self._adjacent({})
        return np.array([self._region(self._parent[int(i)], adjacent) for i in ids], np.int64)

    @staticmethod
    def _region(node: int, adjacent: dict[int, list[tuple[int, float]]]) -> int:
        reached, front = {node}, [node]
        while front:
            front = [other for at in front for other, _ in adjacent[at] if other not in reached]
            reached |= set(front)
        return min(reached) if len(reached) > 1 else -1

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        """Σ weight · strength of every memory with an edge."""
        total: defaultdict[int, float] = defaultdict(float)
        for edge in self._edges:
            for end in (edge.source, edge.target):
                total[end] += edge.strength * relation_weights.get(edge.relation, 1.0)
        ids = sorted(total)
        return np.array(ids, np.int64), np.array([total[i] for i in ids], np.float64)

    def ranks(self, ids: Ids) -> tuple[Column, float]:
        """The share of each memory in all ends of edges, in multiples of the mean: an approximation of PageRank."""
        own, sums = self.degrees({})
        total = dict(zip(own.tolist(), (sums / sums.mean()).tolist(), strict=True)) if len(own) else {}
        found = np.array([total.get(self._parent[int(i)], 0.0) for i in ids], np.float64)
        return found, max(total.values(), default=0.0)

    def community(self, memory: int, limit: int) -> Ids:
        """Other members of its connected component, best connected first."""
        own, sums = self.degrees({})
        regions = dict(zip(own.tolist(), self.regions(own).tolist(), strict=True))
        mates = [i for i in own.tolist() if i != memory and regions[i] == regions.get(memory, -1)]
        degree = dict(zip(own.tolist(), sums.tolist(), strict=True))
        return np.array(sorted(mates, key=lambda i: (-degree[i], i))[:limit], np.int64)
