"""Which memories form a community (feature M10, N2): the connected components, or the groups of Louvain where one
component is most of the graph (Blondel, Guillaume, Lambiotte and Lefebvre 2008)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

PASSES = 10
"""So often Louvain goes over the nodes of a level, and so many levels it has, at most."""
MOST_LINKS = 100_000
"""Of more links Louvain takes seconds of a processor that searches need: the components stand."""
LARGEST_SHARE = 0.5
"""A component of more of the nodes says little about them."""
LEAST_GAIN = 1e-12

Places = NDArray[np.intp]
Adjacent = list[dict[int, float]]


def communities(sources: Places, targets: Places, weights: Column, count: int) -> Places:
    """The community of each of `count` nodes, named by its smallest node. Direction does not matter.

    The same graph always gives the same communities: nodes are gone through in order, and of equal gains the community
    of the smallest number counts.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not count:
        return np.empty(0, np.intp)
    links = coo_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    _, components = connected_components(links, directed=False)
    if np.bincount(components).max() <= LARGEST_SHARE * count or len(sources) > MOST_LINKS:
        return _named(components)
    return _named(_louvain(sources, targets, weights, count))


def modularity(sources: Places, targets: Places, weights: Column, groups: Places) -> float:
    """How much more of the weight lies within the groups than chance would put there, in [-0.5, 1)."""
    total = float(weights.sum())
    if total <= 0.0:
        return 0.0
    inside = float(weights[groups[sources] == groups[targets]].sum())
    ends = np.bincount(groups[sources], weights, groups.max() + 1)
    ends += np.bincount(groups[targets], weights, groups.max() + 1)
    return inside / total - float((ends**2).sum()) / (4.0 * total**2)


def _named(groups: NDArray[np.integer]) -> Places:
    """The same groups, each named by its smallest node."""
    _, first, own = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[own], np.intp)


def _louvain(sources: Places, targets: Places, weights: Column, count: int) -> Places:
    adjacent: Adjacent = [{} for _ in range(count)]
    for source, target, weight in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True):
        if source != target:
            adjacent[source][target] = adjacent[source].get(target, 0.0) + weight
            adjacent[target][source] = adjacent[target].get(source, 0.0) + weight
    within = [0.0] * count
    groups = np.arange(count)
    for _ in range(PASSES):
        moved = _moved(adjacent, within)
        numbers = {group: number for number, group in enumerate(sorted(set(moved)))}
        level = [numbers[group] for group in moved]
        groups = np.array(level, np.intp)[groups]
        if len(numbers) == len(adjacent):
            break
        adjacent, within = _joined(adjacent, within, level, len(numbers))
    return groups


def _moved(adjacent: Adjacent, within: list[float]) -> list[int]:
    """Each node's group after nodes have moved, one by one, to where modularity gains most, until none gains.

    `within` is twice the weight of the links inside of what a node stands for.
    """
    strengths = [sum(links.values()) + inside for links, inside in zip(adjacent, within, strict=True)]
    total = sum(strengths)
    groups = list(range(len(adjacent)))
    if total <= 0.0:
        return groups
    strength_of = dict(enumerate(strengths))
    for _ in range(PASSES):
        still = True
        for node, links in enumerate(adjacent):
            own, strength = groups[node], strengths[node]
            strength_of[own] -= strength
            shared: dict[int, float] = {own: 0.0}
            for other, weight in links.items():
                shared[groups[other]] = shared.get(groups[other], 0.0) + weight
            stays = shared[own] - strength_of[own] * strength / total
            best, gain = own, stays + LEAST_GAIN * total
            for group in sorted(shared):
                found = shared[group] - strength_of[group] * strength / total
                if group != own and found > gain:
                    best, gain = group, found
            groups[node] = best
            strength_of[best] += strength
            still = still and best == own
        if still:
            break
    return groups


def _joined(adjacent: Adjacent, within: list[float], groups: list[int], count: int) -> tuple[Adjacent, list[float]]:
    """The graph whose nodes are the groups."""
    joined: Adjacent = [{} for _ in range(count)]
    inside = [0.0] * count
    for node, links in enumerate(adjacent):
        own = groups[node]
        inside[own] += within[node]
        for other, weight in links.items():
            group = groups[other]
            if group == own:
                inside[own] += weight
            else:
                joined[own][group] = joined[own].get(group, 0.0) + weight
    return joined, inside
