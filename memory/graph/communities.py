"""Groups memories into communities (feature M10, N2): connected components, or Louvain communities (Blondel, Guillaume,
Lambiotte and Lefebvre 2008) if one component contains most of the graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.process.yielding import yield_now

PASSES = 10
"""Maximum number of sweeps of Louvain over the nodes of a level, and of levels."""
MOST_LINKS = 100_000
"""With more links, Louvain would take seconds of processor time that searches need: components are used."""
LARGEST_SHARE = 0.5
"""A component with a larger share of the nodes says little about them."""
LEAST_GAIN = 1e-12

Places = NDArray[np.intp]
Adjacent = list[dict[int, float]]


def communities(sources: Places, targets: Places, weights: Column, count: int) -> Places:
    """The community of each node, named by its smallest node. Direction does not matter.

    Deterministic: nodes are visited in order, and ties go to the community with the smallest number.

    Args:
        sources: First node of each link, (links,).
        targets: Second node of each link.
        weights: Weight of each link.
        count: Number of nodes; they are numbered from 0.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not count:
        return np.empty(0, np.intp)
    # `coo_array` adds up duplicate entries, so that several edges between two nodes are one link.
    links = coo_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    _, components = connected_components(links, directed=False)
    if np.bincount(components).max() <= LARGEST_SHARE * count or len(sources) > MOST_LINKS:
        return _name_groups(components)
    return _name_groups(_louvain(sources, targets, weights, count))


def _name_groups(groups: NDArray[np.integer]) -> Places:
    """The same groups, each named by its smallest node."""
    # first: (groups,), the smallest node of each group; own: (nodes,), the group of each node
    _, first, own = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[own], np.intp)


def _louvain(sources: Places, targets: Places, weights: Column, count: int) -> Places:
    # Undirected: parallel edges add up, self-loops are ignored.
    adjacent: Adjacent = [{} for _ in range(count)]
    for source, target, weight in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True):
        if source != target:
            adjacent[source][target] = adjacent[source].get(target, 0.0) + weight
            adjacent[target][source] = adjacent[target].get(source, 0.0) + weight
    # twice the weight of the links inside each node: none yet
    within = [0.0] * count
    groups = np.arange(count)
    for _ in range(PASSES):
        moved = _moved(adjacent, within)
        numbers = {group: number for number, group in enumerate(sorted(set(moved)))}
        level = [numbers[group] for group in moved]
        # Compose: node → group of the level below → group of this level.
        groups = np.array(level, np.intp)[groups]
        # as many groups as nodes: no move gained anything
        if len(numbers) == len(adjacent):
            break
        adjacent, within = _joined(adjacent, within, level, len(numbers))
    return groups


def _moved(adjacent: Adjacent, within: list[float]) -> list[int]:
    """The group of each node after nodes have moved, one at a time, to the group of largest modularity gain.

    `within` is twice the weight of the links inside each node, which is a group of the level below.
    """
    strengths = [sum(links.values()) + inside for links, inside in zip(adjacent, within, strict=True)]
    # total = 2m; the gain of a move is shared weight - S_c · k / 2m, up to a constant factor (Blondel et al., eq. 2)
    total = sum(strengths)
    groups = list(range(len(adjacent)))
    if total <= 0.0:
        return groups
    strength_of = dict(enumerate(strengths))
    for _ in range(PASSES):
        still = True
        for node, links in enumerate(adjacent):
            yield_now()
            own, strength = groups[node], strengths[node]
            # the node is taken out of its group while it chooses
            strength_of[own] -= strength
            shared: dict[int, float] = {own: 0.0}
            for other, weight in links.items():
                shared[groups[other]] = shared.get(groups[other], 0.0) + weight
            stays = shared[own] - strength_of[own] * strength / total
            # A tiny margin keeps rounding errors from moving nodes back and forth.
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
    """The next level: a graph whose nodes are the groups."""
    joined: Adjacent = [{} for _ in range(count)]
    inside = [0.0] * count
    for node, links in enumerate(adjacent):
        yield_now()
        own = groups[node]
        inside[own] += within[node]
        for other, weight in links.items():
            group = groups[other]
            if group == own:
                # each link is met at both of its ends, so `inside` counts its weight twice
                inside[own] += weight
            else:
                joined[own][group] = joined[own].get(group, 0.0) + weight
    return joined, inside
