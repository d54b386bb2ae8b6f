"""Links between documents that name the same (features M10 and S5, R10): where edges are few.

What is linked is a function of the names and of the edges that others made: however often and in whatever parts it is
computed, the same edges come out, and they go when what they stand on goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.reading.density import DENSE
from speckit_memory.memory.store.records import Edge, Relation
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.graph import entities as table
from speckit_memory.memory.store.tables.graph.edges import EDGES_PER_NODE, STRONGEST_AUTOMATIC
from speckit_memory.memory.store.tables.graph.entities import Held

MAKER = "entities"
"""Who made such an edge, for whoever wants them out again."""
MOST_HOLDERS = 10
"""What more memories name tells nothing of two of them."""
LANGUAGE_SHARE = 0.25
"""What a language of code is worth of another name."""
LEAST_STRENGTH = 0.25
"""A weaker link is none: two memories share one name that three have, or more of them that more have."""
MOST_PAIRS = 1_000_000
"""So many pairs of memories with a name in common are looked at, those with the rarest names first."""
NAMED_AS_EVIDENCE = 3
LINKED = 200
"""Edges of one batch."""

Pair = tuple[int, int]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An edge that the names make: how strong, and which names."""

    strength: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Differences:
    """The edges that stand on nothing any more, and those that are missing or say something else."""

    gone: tuple[Edge, ...]
    new: dict[Pair, Wanted]

    def __len__(self) -> int:
        """How many edges are to be made, changed or removed."""
        return len(self.gone) + len(self.new)


def room(connection: apsw.Connection) -> int:
    """How many edges names may make: as many as the others leave to one per memory."""
    memories: int = value(connection, "SELECT count(*) FROM memories")
    others: int = value(connection, "SELECT count(*) FROM causal_edges WHERE created_by <> ?", (MAKER,))
    return max(0, int(DENSE * memories) - others)


def waiting(connection: apsw.Connection, now: float) -> int:
    """How many edges are to be made, changed or removed."""
    return len(differences(connection, now))


def differences(connection: apsw.Connection, _now: float) -> Differences:
    """What separates the edges that names make from those that are there."""
    there = {(edge.source_id, edge.target_id): edge for edge in edges.edges_by(connection, MAKER)}
    wanted = links(connection)
    return Differences(
        tuple(edge for pair, edge in there.items() if pair not in wanted),
        {pair: said for pair, said in wanted.items() if pair not in there or _differs(there[pair], said)},
    )


def write(txn: Transaction, now: float, found: Differences) -> int:
    """Does the first of them; returns how many. What others changed meanwhile is left to the next batch."""
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


def links(connection: apsw.Connection) -> dict[Pair, Wanted]:
    """The edges that names make: from the later memory to the earlier one, the strongest first.

    A name that n memories have is worth 1/2 / (n - 1) between two of them, a quarter of that when it is a language of
    code; what two memories share adds up, to 1/2. No memory gets more than 20 edges with those of others, memories that
    others have linked are left alone and so are those whose link a person took away, and all edges together are no more
    than one per memory.
    """
    most = room(connection)
    if not most:
        return {}
    others = rows(connection, "SELECT source_id, target_id FROM causal_edges WHERE created_by <> ?", (MAKER,))
    apart = {frozenset(pair) for pair in (*others, *_taken_away(connection))}
    degrees = Counter(end for pair in others for end in pair)
    held = table.shared(connection, MOST_HOLDERS)
    chosen: dict[Pair, float] = {}
    for pair, worth in _worths(held):
        if len(chosen) == most:
            break
        if frozenset(pair) not in apart and max(degrees[end] for end in pair) < EDGES_PER_NODE:
            degrees.update(pair)
            chosen[pair] = min(STRONGEST_AUTOMATIC, worth)
    names = _names(held, {end for pair in chosen for end in pair})
    return {
        (later, earlier): Wanted(worth, _evidence(names[later], names[earlier]))
        for (later, earlier), worth in chosen.items()
    }


def _worths(held: list[Held]) -> Iterable[tuple[Pair, float]]:
    """What each pair of memories shares is worth, where that is enough, the most first."""
    memories = np.array([one.memory for one in held], np.int64)
    sizes = np.array([one.holders for one in held], np.int64)
    shares = np.array([1.0 if one.telling else LANGUAGE_SHARE for one in held])
    found: list[tuple[Numbers, Numbers, NDArray[np.float64]]] = []
    left = MOST_PAIRS
    for size in range(2, MOST_HOLDERS + 1):
        places = np.flatnonzero(sizes == size)
        left -= len(places) * (size - 1) // 2
        if left < 0:
            break
        groups, share = memories[places].reshape(-1, size), shares[places][::size]
        for earlier in range(size):
            for later in range(earlier + 1, size):
                worth = share * STRONGEST_AUTOMATIC / (size - 1)
                found.append((groups[:, later], groups[:, earlier], worth))
    if not found:
        return
    later_ids, earlier_ids, worths = (np.concatenate(column) for column in zip(*found, strict=True))
    pairs, number = np.unique(np.stack([later_ids, earlier_ids]), axis=1, return_inverse=True)
    total = np.round(np.bincount(number.reshape(-1), worths, pairs.shape[1]), 4)
    for place in np.lexsort((pairs[1], pairs[0], -total)).tolist():
        if total[place] < LEAST_STRENGTH:
            break
        yield (int(pairs[0, place]), int(pairs[1, place])), float(total[place])


def _names(held: list[Held], memories: set[int]) -> dict[int, dict[str, int]]:
    """The names of these memories that others have, and the place of each among all: the rarest first."""
    found: dict[int, dict[str, int]] = {memory: {} for memory in memories}
    for place, one in enumerate(held):
        if one.memory in memories:
            found[one.memory][one.name] = place
    return found


def _evidence(one: dict[str, int], other: dict[str, int]) -> str:
    both = sorted(one.keys() & other.keys(), key=lambda name: (one[name], name))
    return f"both name {', '.join(both[:NAMED_AS_EVIDENCE])}"


def _taken_away(connection: apsw.Connection) -> list[Pair]:
    """The pairs whose link a person removed one by one, and nobody brought back since."""
    return rows(
        connection,
        "SELECT source_id, target_id FROM edge_history h WHERE relation = ? AND changed_by = 'manual' "
        "AND after IS NULL AND undone_by IS NULL AND id = (SELECT max(id) FROM edge_history l WHERE "
        "(l.source_id, l.target_id, l.relation) = (h.source_id, h.target_id, h.relation))",
        (str(Relation.SUPPORTS),),
    )


def _may_link(connection: apsw.Connection, source: int, target: int) -> bool:
    """Whether both memories are there, and have room or are linked by their names already."""
    if known := edges.edge_between(connection, source, target, Relation.SUPPORTS):
        return known.created_by == MAKER
    there: int = value(connection, "SELECT count(*) FROM memories WHERE id IN (?, ?)", (source, target))
    return there == 2 and all(edges.degree(connection, end) < EDGES_PER_NODE for end in (source, target))


def _differs(edge: Edge, said: Wanted) -> bool:
    """Whether an edge says something else; what use added to its strength is no difference."""
    return edge.evidence != said.evidence or (edge.said is None and edge.strength != said.strength)
