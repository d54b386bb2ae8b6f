"""Keeps the ranks and communities of the causal graph up to its edges, where the graph is dense enough (M10, N2)."""

from __future__ import annotations

from dataclasses import dataclass

import apsw
import numpy as np

from speckit_memory.memory.graph.communities import communities
from speckit_memory.memory.graph.pagerank import pagerank
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading.density import density
from speckit_memory.memory.store.records import Relation
from speckit_memory.memory.store.tables.graph import ranks
from speckit_memory.memory.store.tables.graph.ranks import Ranked

TOWARDS_TARGET = {
    Relation.DERIVED_FROM: True,
    Relation.SUPPORTS: True,
    Relation.CAUSED: False,
    Relation.ENABLED: False,
    Relation.SUPERSEDES: False,
}
"""Whether rank flows from the source of an edge to its target: what follows from something vouches for it, and what is
superseded hands on to its successor. A contradiction vouches for neither."""
DIGITS = 6
"""Ranks are kept so exactly that a change far away in the graph is no change."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the edges at a `version` make of memories; nothing where the graph is not dense."""

    version: int
    ranked: tuple[Ranked, ...]


def stale(connection: apsw.Connection, _now: float) -> int:
    """How many memories wait to be ranked anew, or to lose a rank that the graph is too thin for; 0 when all hold."""
    found, known = density(connection), ranks.count(connection)
    if found.band != "dense":
        return known
    state = ranks.state(connection)
    return 0 if known and state.ranked == state.version else found.connected


def computed(connection: apsw.Connection, now: float) -> Ranking | None:
    """The ranks as the edges that the connection sees make them; None when those that are kept hold."""
    if not stale(connection, now):
        return None
    version = ranks.state(connection).version
    if density(connection).band != "dense":
        return Ranking(version, ())
    return Ranking(version, of_edges(connection))


def write(txn: Transaction, _now: float, found: Ranking | None) -> int:
    """Keeps what was computed; returns for how many memories something changed."""
    return ranks.replace(txn, found.ranked, found.version) if found else 0


def of_edges(connection: apsw.Connection) -> tuple[Ranked, ...]:
    """What the edges that the connection sees make of the memories, by id, however dense they are."""
    # by keys: what is found depends on the order of nodes, and may not on that in which files were indexed
    edges = rows(
        connection,
        "SELECT source_id, target_id, relation, strength FROM causal_edges JOIN memories AS s ON s.id = source_id "
        "JOIN memories AS t ON t.id = target_id ORDER BY s.key, t.key, relation",
    )
    order = rows(
        connection,
        "SELECT id FROM memories WHERE id IN (SELECT source_id FROM causal_edges UNION SELECT target_id "
        "FROM causal_edges) ORDER BY key",
    )
    return ranked(edges, [memory for (memory,) in order])


def ranked(edges: list[tuple[int, int, str, float]], order: list[int]) -> tuple[Ranked, ...]:
    """The rank and the community of every memory with an edge (source, target, relation, strength), by id.

    `order` holds the ids of these memories; of several ways to part the graph equally well, the first in it decide.
    """
    if not edges:
        return ()
    memories, place = np.array(order, np.int64), {memory: number for number, memory in enumerate(order)}
    sources, targets = np.array([(place[source], place[target]) for source, target, *_ in edges], np.intp).T
    strengths = np.array([edge[3] for edge in edges], np.float64)
    relations = [Relation(edge[2]) for edge in edges]
    flows = np.array([relation in TOWARDS_TARGET for relation in relations], np.bool_)
    forward = np.array([TOWARDS_TARGET.get(relation, True) for relation in relations], np.bool_)
    givers, takers = np.where(forward, sources, targets), np.where(forward, targets, sources)
    rank = pagerank(givers[flows], takers[flows], strengths[flows], len(memories)) * len(memories)
    groups = communities(sources, targets, strengths, len(memories))
    found = zip(order, rank.tolist(), memories[groups].tolist(), strict=True)
    return tuple(sorted(Ranked(memory, round(value, DIGITS), community) for memory, value, community in found))
