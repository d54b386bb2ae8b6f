"""Causal edges between memories (feature M7).

`created_by` tells where an edge comes from: `manual` (made by a person or an agent), `document` (declared in a
document, see `memory.store.writing.links`), or the name of an automatic process. Whatever writes an edge does so here
or asks `has_room` and `strongest` of this module, which alone know the limits; what they forbid is told to the caller.
"""

from __future__ import annotations

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.missing import MissingMemoryError
from speckit_memory.memory.store.records import MENTION, Edge, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import State

EDGES_PER_NODE = 20
"""No memory has more edges than this, incoming and outgoing together."""
STRONGEST_AUTOMATIC = 0.5
DELIBERATE = ("manual", "document")
"""Makers of edges that no automatic process may take over or remove, nor make weaker than they were said to be."""

_COLUMNS = "id, source_id, target_id, relation, strength, evidence, created_by, said"
_EDGE = f"SELECT {_COLUMNS} FROM causal_edges"


def strongest(created_by: str) -> float:
    """The most that an edge of this maker may be worth: 1, and 0.5 for automatic processes."""
    return 1.0 if created_by in DELIBERATE else STRONGEST_AUTOMATIC


def has_room(edges: int) -> bool:
    """Whether a memory with so many edges may get one more."""
    return edges < EDGES_PER_NODE


def add_edge(
    txn: Transaction,
    source_id: int,
    target_id: int,
    relation: Relation,
    strength: float,
    evidence: str,
    created_by: str,
    now: float,
) -> Edge:
    """Adds the edge "source RELATION target", or changes the one there is, and returns it as stored.

    An automatic process leaves a deliberate edge as it is. What use has added to the strength is gone after a change.
    Raises E030 (an edge to itself, no maker), E032 (a strength outside 0..1 or above 0.5 for an automatic process, a
    21st edge of a memory) and E080 (no such memory).
    """
    _require_values(source_id, target_id, strength, created_by)
    connection = txn.connection
    for memory_id in (source_id, target_id):
        if not value(connection, "SELECT 1 FROM memories WHERE id = ?", (memory_id,)):
            raise MissingMemoryError(memory_id)
    triple = (source_id, target_id, str(relation))
    known = edge_between(connection, *triple)
    if known is not None and created_by not in DELIBERATE and known.created_by in DELIBERATE:
        return known
    return put_state(txn, triple, State(strength, evidence, created_by, None), by=created_by, why=evidence, now=now)


def require_possible(txn: Transaction, source_id: int, target_id: int, state: State, *, new: bool) -> None:
    """Raises E030 and E032 as `add_edge` for an edge that cannot be made what `state` says."""
    _require_values(source_id, target_id, state.strength, state.created_by)
    for memory_id in (source_id, target_id) if new else ():
        _require_room(txn.connection, memory_id)


def put_state(
    txn: Transaction,
    triple: tuple[int, int, str],
    state: State,
    *,
    by: str,
    why: str,
    now: float,
    undoes: int | None = None,
) -> Edge:
    """Makes an edge what `state` says, there or not, and notes that `by` did so. Raises E032 for a 21st edge."""
    connection = txn.connection
    known = edge_between(connection, *triple)
    before = None if known is None else State.of(known)
    if known is None:
        for memory_id in triple[:2]:
            _require_room(connection, memory_id)
            _make_room(txn, memory_id)
    elif before == state:
        return known
    with txn.part():
        stored = rows(
            connection,
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, said, "
            "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source_id, target_id, relation) DO UPDATE SET "
            "strength = excluded.strength, evidence = excluded.evidence, created_by = excluded.created_by, "
            f"said = excluded.said RETURNING {_COLUMNS}",
            (*triple, *state, now),
        )
        edge_history.record(txn, triple, before, state, by=by, why=why, now=now, undoes=undoes)
        changes.record(txn, triple[:2], "edges")
    return _edge(stored[0])


def remove_edge(txn: Transaction, edge: Edge, *, by: str, why: str, now: float, undoes: int | None = None) -> None:
    """Removes a stored edge, and notes that `by` did so."""
    triple = (edge.source_id, edge.target_id, str(edge.relation))
    with txn.part():
        txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
        edge_history.record(txn, triple, State.of(edge), None, by=by, why=why, now=now, undoes=undoes)
        changes.record(txn, triple[:2], "edges")


def edge_with(connection: apsw.Connection, edge_id: int) -> Edge | None:
    """The edge with this id."""
    found = rows(connection, f"{_EDGE} WHERE id = ?", (edge_id,))
    return _edge(found[0]) if found else None


def edge_between(connection: apsw.Connection, source_id: int, target_id: int, relation: str) -> Edge | None:
    """The edge "source RELATION target"."""
    found = rows(
        connection,
        f"{_EDGE} WHERE source_id = ? AND target_id = ? AND relation = ?",
        (source_id, target_id, str(relation)),
    )
    return _edge(found[0]) if found else None


def edges_by(connection: apsw.Connection, created_by: str, memory_id: int | None = None) -> list[Edge]:
    """The edges of one maker, by id: all, or those of a memory."""
    found = rows(
        connection,
        f"{_EDGE} WHERE created_by = ?1 AND (?2 IS NULL OR source_id = ?2 OR target_id = ?2) ORDER BY id",
        (created_by, memory_id),
    )
    return [_edge(row) for row in found]


def degree(connection: apsw.Connection, memory_id: int) -> int:
    """Number of edges of a memory, incoming and outgoing."""
    number: int = value(
        connection, "SELECT count(*) FROM causal_edges WHERE source_id = ?1 OR target_id = ?1", (memory_id,)
    )
    return number


def edge_count(connection: apsw.Connection) -> int:
    """Number of edges in the store."""
    number: int = value(connection, "SELECT count(*) FROM causal_edges")
    return number


def makers(connection: apsw.Connection) -> dict[str, int]:
    """How many edges each maker has made, by name."""
    return dict(
        rows(connection, "SELECT created_by, count(*) FROM causal_edges GROUP BY created_by ORDER BY created_by")
    )


def _edge(row: tuple[int, int, int, str, float, str, str, float | None]) -> Edge:
    edge_id, source_id, target_id, relation, strength, evidence, created_by, said = row
    return Edge(edge_id, source_id, target_id, Relation(relation), strength, evidence, created_by, said)


def gives_way(edge: Edge) -> bool:
    """Whether an edge is no more than what a text mentions in passing."""
    return edge.created_by == "document" and edge.evidence.startswith(MENTION)


def _make_room(txn: Transaction, memory_id: int) -> None:
    """Removes an edge that gives way where a memory has no room for another; still declared, it may come back."""
    if not has_room(degree(txn.connection, memory_id)):
        edge = min(
            filter(gives_way, edges_by(txn.connection, "document", memory_id)),
            key=lambda edge: (edge.strength, -edge.id),
        )
        txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
        changes.record(txn, (edge.source_id, edge.target_id), "edges")


def _require_room(connection: apsw.Connection, memory_id: int) -> None:
    if not has_room(degree(connection, memory_id)) and not any(
        map(gives_way, edges_by(connection, "document", memory_id))
    ):
        key = value(connection, "SELECT key FROM memories WHERE id = ?", (memory_id,))
        raise SpeckitError(
            "E032",
            f"memory {memory_id} already has {EDGES_PER_NODE} edges: {key}",
            actions=("remove one of its edges: `speckit-memory lineage` shows them with their ids",),
        )


def _require_values(source_id: int, target_id: int, strength: float, created_by: str) -> None:
    if source_id == target_id:
        raise SpeckitError("E030", f"memory {source_id} cannot have an edge to itself")
    if not created_by:
        raise SpeckitError("E030", "an edge needs to say who made it", hint="For example: manual.")
    if not 0.0 <= strength <= strongest(created_by):
        limit = strongest(created_by)
        raise SpeckitError("E032", f"strength is {strength}, accepted for '{created_by}': 0 to {limit}")
