"""Links documents that share names (features M10 and S5, R10), while the graph has few edges.

The links are a function of the names and of all other edges: repeated or partial runs produce the same edges, and an
edge is removed when its basis is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.reading.density import DENSE
from speckit_memory.memory.store.records import Edge, Relation
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.graph import entities as table
from speckit_memory.memory.store.tables.graph.edges import EDGES_PER_NODE, STRONGEST_AUTOMATIC
from speckit_memory.memory.store.tables.graph.entities import EntityRow

MAKER = "entities"
"""The creator recorded with such an edge, by which all of them can be removed."""
MOST_HOLDERS = 10
"""A name in more memories than this does not connect two of them."""
LANGUAGE_SHARE = 0.25
"""Weight of the language of a code block, relative to another name."""
LEAST_STRENGTH = 0.25
"""Weaker links are not made: two memories share one name that three have, or more names that more have."""
MOST_PAIRS = 1_000_000
"""Pairs of memories with a common name that are considered, rarest names first."""
NAMED_AS_EVIDENCE = 3
LINKED = 200
"""Edges per batch."""

Pair = tuple[int, int]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EntityEdge:
    """An edge based on names: its strength and the names."""

    strength: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Differences:
    """Edges whose basis is gone, and edges that are missing or have other contents."""

    gone: tuple[Edge, ...]
    new: dict[Pair, EntityEdge]

    def __len__(self) -> int:
        """Number of edges to add, change or remove."""
        return len(self.gone) + len(self.new)


def room(connection: Connection) -> int:
    """Number of edges that names may make: one per memory, minus the other edges."""
    memories: int = value(connection, "SELECT count(*) FROM memories")
    others: int = value(connection, "SELECT count(*) FROM causal_edges WHERE created_by <> ?", (MAKER,))
    return max(0, int(DENSE * memories) - others)


def waiting(connection: Connection, now: float) -> int:
    """Number of edges to add, change or remove."""
    return len(differences(connection, now))


def differences(connection: Connection, _now: float) -> Differences:
    """The difference between the edges that names make and those stored."""
    there = {(edge.source_id, edge.target_id): edge for edge in edges.edges_by(connection, MAKER)}
    wanted = links(connection)
    return Differences(
        tuple(edge for pair, edge in there.items() if pair not in wanted),
        {pair: said for pair, said in wanted.items() if pair not in there or _differs(there[pair], said)},
    )


def write(txn: Transaction, now: float, found: Differences) -> int:
    """Apply the first differences; returns their number. Memories changed meanwhile are left to the next batch."""
    changed = 0
    for edge in found.gone[:LINKED]:
        if edges.edge_with(txn.connection, edge.id) == edge:
            edges.remove_edge(txn, edge, by=MAKER, why="no name is shared any more", now=now)
            changed += 1
    for (source, target), said in list(found.new.items())[: LINKED - changed]:
        if _may_link(txn.connection, source, target):
            edges.add_edge(txn, source, target, Relation.SUPPORTS, said.strength, said.evidence, MAKER, now)
            changed += 1
    return changed


def links(connection: Connection) -> dict[Pair, EntityEdge]:
    """The edges that names make: from the later memory to the earlier one, strongest first.

    A name in n memories adds 1/2 / (n - 1) to the strength of each pair of them, a quarter of that for a programming
    language; a pair's strength is the sum over its shared names, at most 1/2. A memory gets at most 20 edges including
    those of others. Pairs already linked by others, or unlinked by a person, are skipped. All edges together number at
    most one per memory.
    """
    most = room(connection)
    if not most:
        return {}
    others = rows(connection, "SELECT source_id, target_id FROM causal_edges WHERE created_by <> ?", (MAKER,))
    apart = {frozenset(pair) for pair in (*others, *_taken_away(connection))}
    # Greedy, strongest first: each memory has room for a limited number of edges.
    degrees = Counter(end for pair in others for end in pair)
    held = table.shared_entities(connection, MOST_HOLDERS)
    chosen: dict[Pair, float] = {}
    for pair, worth in _worths(held):
        if len(chosen) == most:
            break
        if frozenset(pair) not in apart and max(degrees[end] for end in pair) < EDGES_PER_NODE:
            degrees.update(pair)
            chosen[pair] = min(STRONGEST_AUTOMATIC, worth)
    names = _names(held, {end for pair in chosen for end in pair})
    return {
        (later, earlier): EntityEdge(worth, _evidence(names[later], names[earlier]))
        for (later, earlier), worth in chosen.items()
    }


def _worths(held: list[EntityRow]) -> Iterable[tuple[Pair, float]]:
    """The strength of each pair of memories, where it suffices, strongest first."""
    memories = np.array([one.memory for one in held], np.int64)
    sizes = np.array([one.holders for one in held], np.int64)
    shares = np.array([1.0 if one.telling else LANGUAGE_SHARE for one in held])
    found: list[tuple[Numbers, Numbers, NDArray[np.float64]]] = []
    left = MOST_PAIRS
    for size in range(2, MOST_HOLDERS + 1):
        places = np.flatnonzero(sizes == size)
        # a name in n memories has n entries here and makes n (n - 1) / 2 pairs
        left -= len(places) * (size - 1) // 2
        if left < 0:
            break
        groups, share = memories[places].reshape(-1, size), shares[places][::size]
        # groups: (names, size), memories of each name in ascending order; share: (names,)
        for earlier in range(size):
            for later in range(earlier + 1, size):
                worth = share * STRONGEST_AUTOMATIC / (size - 1)
                found.append((groups[:, later], groups[:, earlier], worth))
    if not found:
        return
    later_ids, earlier_ids, worths = (np.concatenate(column) for column in zip(*found, strict=True))
    # pairs: (2, n) distinct pairs; number: (entries,) index of the pair of each entry
    pairs, number = np.unique(np.stack([later_ids, earlier_ids]), axis=1, return_inverse=True)
    total = np.round(np.bincount(number.reshape(-1), worths, pairs.shape[1]), 4)
    # Ties by id, so that the result does not depend on the order of names.
    for place in np.lexsort((pairs[1], pairs[0], -total)).tolist():
        if total[place] < LEAST_STRENGTH:
            break
        yield (int(pairs[0, place]), int(pairs[1, place])), float(total[place])


def _names(held: list[EntityRow], memories: set[int]) -> dict[int, dict[str, int]]:
    """The shared names of these memories, with the rank of each name among all: rarest first."""
    found: dict[int, dict[str, int]] = {memory: {} for memory in memories}
    for place, one in enumerate(held):
        if one.memory in memories:
            found[one.memory][one.name] = place
    return found


def _evidence(one: dict[str, int], other: dict[str, int]) -> str:
    both = sorted(one.keys() & other.keys(), key=lambda name: (one[name], name))
    return f"both name {', '.join(both[:NAMED_AS_EVIDENCE])}"


def _taken_away(connection: Connection) -> list[Pair]:
    """The pairs whose link a person removed individually, and that was not restored since."""
    return rows(
        connection,
        "SELECT source_id, target_id FROM edge_history h WHERE relation = ? AND changed_by = 'manual' "
        "AND after IS NULL AND undone_by IS NULL AND id = (SELECT max(id) FROM edge_history l WHERE "
        "(l.source_id, l.target_id, l.relation) = (h.source_id, h.target_id, h.relation))",
        (str(Relation.SUPPORTS),),
    )


def _may_link(connection: Connection, source: int, target: int) -> bool:
    """Whether both memories exist, and either have room for an edge or are already linked by their names."""
    if known := edges.edge_between(connection, source, target, Relation.SUPPORTS):
        return known.created_by == MAKER
    there: int = value(connection, "SELECT count(*) FROM memories WHERE id IN (?, ?)", (source, target))
    return there == 2 and all(edges.degree(connection, end) < EDGES_PER_NODE for end in (source, target))


def _differs(edge: Edge, said: EntityEdge) -> bool:
    """Whether an edge has other contents; strength added by use does not count."""
    return edge.evidence != said.evidence or (edge.said is None and edge.strength != said.strength)
