"""Causal edges between memories (feature M7).

`created_by` tells where an edge comes from: `manual` (made by a person or an agent), `document` (declared in a
document, see `memory.store.writing.links`), or the name of an automatic process.
"""

from __future__ import annotations

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.queries import rows, value
from speckit_memory.memory.store.records import Edge, Relation
from speckit_memory.memory.store.tables import changes

EDGES_PER_NODE = 20
"""No memory has more edges than this, incoming and outgoing together."""
STRONGEST_AUTOMATIC = 0.5
DELIBERATE = ("manual", "document")
"""Makers of edges that no automatic process may change."""

_EDGE = "SELECT id, source_id, target_id, relation, strength, evidence, created_by FROM causal_edges"


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

    An automatic process leaves a deliberate edge as it is. Raises E030 (an edge to itself, no maker), E032 (a strength
    outside 0..1 or above 0.5 for an automatic process, a 21st edge of a memory) and E080 (no such memory).
    """
    _require_values(source_id, target_id, strength, created_by)
    connection = txn.connection
    for memory_id in (source_id, target_id):
        if not value(connection, "SELECT 1 FROM memories WHERE id = ?", (memory_id,)):
            raise SpeckitError("E080", f"there is no memory with the id {memory_id}")
    triple = (source_id, target_id, relation)
    known = rows(connection, f"{_EDGE} WHERE source_id = ? AND target_id = ? AND relation = ?", triple)
    if known and created_by not in DELIBERATE and known[0][6] in DELIBERATE:
        return _edge(known[0])
    if not known:
        for memory_id in (source_id, target_id):
            if degree(connection, memory_id) >= EDGES_PER_NODE:
                raise SpeckitError(
                    "E032",
                    f"memory {memory_id} already has {EDGES_PER_NODE} edges",
                    actions=("delete one of its edges",),
                )
    with txn.part():
        stored = rows(
            connection,
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source_id, target_id, relation) DO UPDATE SET "
            "strength = excluded.strength, evidence = excluded.evidence, created_by = excluded.created_by "
            "RETURNING id, source_id, target_id, relation, strength, evidence, created_by",
            (*triple, strength, evidence, created_by, now),
        )
        changes.record(txn, (source_id, target_id), "edges")
    return _edge(stored[0])


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


def _edge(row: tuple[int, int, int, str, float, str, str]) -> Edge:
    edge_id, source_id, target_id, relation, strength, evidence, created_by = row
    return Edge(edge_id, source_id, target_id, Relation(relation), strength, evidence, created_by)


def _require_values(source_id: int, target_id: int, strength: float, created_by: str) -> None:
    if source_id == target_id:
        raise SpeckitError("E030", f"memory {source_id} cannot have an edge to itself")
    if not created_by:
        raise SpeckitError("E030", "an edge needs to say who made it", hint="For example: manual.")
    strongest = 1.0 if created_by in DELIBERATE else STRONGEST_AUTOMATIC
    if not 0.0 <= strength <= strongest:
        raise SpeckitError("E032", f"strength is {strength}, accepted for '{created_by}': 0 to {strongest}")
