"""Causal edges between memories (feature M7).

`created_by` names the origin of an edge: `manual` (made by a person or an agent), `document` (declared in a document,
see `memory.store.writing.links`), or the name of an automatic process. All writers of edges use this module or check
its limits by `has_room` and `strongest`; violations are reported to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.missing import MissingMemoryError
from speckit_memory.memory.store.records import MENTION, Edge, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import EdgeState

EDGES_PER_NODE = 20
"""Maximum number of edges of a memory, incoming and outgoing together."""
STRONGEST_AUTOMATIC = 0.5
DELIBERATE = ("manual", "document")
"""Origins of edges that automatic processes may not take over, remove or weaken below the given strength."""

_COLUMNS = "id, source_id, target_id, relation, strength, evidence, created_by, said, principal"
_EDGE = f"SELECT {_COLUMNS} FROM causal_edges"


def strongest(created_by: str) -> float:
    """The maximum strength of an edge of this origin: 1, or 0.5 for automatic processes."""
    return 1.0 if created_by in DELIBERATE else STRONGEST_AUTOMATIC


def has_room(edges: int) -> bool:
    """Whether a memory with this number of edges may get another one."""
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
    """Adds the edge "source RELATION target" or changes the existing one. A change discards strength gained by use.

    Args:
        txn: The transaction.
        source_id: Id of the source memory.
        target_id: Id of the target memory, another one.
        relation: The relation.
        strength: In [0, 1]; at most 0.5 for an automatic process.
        evidence: The reason for the edge, for readers.
        created_by: The origin, not empty. An automatic process leaves a deliberate edge unchanged.
        now: The time, in epoch seconds.

    Returns:
        The edge as stored.

    Raises:
        SpeckitError: E030 (an edge to itself, or no origin), E032 (strength out of range, or a 21st edge of a memory)
            or E080 (no such memory).
    """
    _require_values(source_id, target_id, strength, created_by)
    connection = txn.connection
    ends = (source_id, target_id)
    there = rows(connection, "SELECT id FROM memories WHERE id IN (SELECT value FROM carray(?))", (integers(ends),))
    for memory_id in ends:
        if (memory_id,) not in there:
            raise MissingMemoryError(memory_id)
    triple = (source_id, target_id, str(relation))
    known = edge_between(connection, *triple)
    if known is not None and created_by not in DELIBERATE and known.created_by in DELIBERATE:
        return known
    state = EdgeState(strength, evidence, created_by, None)
    return _put(txn, triple, known, state, by=created_by, why=evidence, now=now)


def require_possible(txn: Transaction, source_id: int, target_id: int, state: EdgeState, *, new: bool) -> None:
    """Checks a state of an edge before `put_state` stores it.

    Args:
        txn: The transaction.
        source_id: Id of the source memory.
        target_id: Id of the target memory.
        state: The state to be stored.
        new: Whether the edge would be a new one, for which both memories need room.

    Raises:
        SpeckitError: E030 and E032 as `add_edge`.
    """
    _require_values(source_id, target_id, state.strength, state.created_by)
    for memory_id in _full(txn.connection, (source_id, target_id)) if new else ():
        _weakest_mention(txn.connection, memory_id)


def put_state(
    txn: Transaction,
    triple: tuple[int, int, str],
    state: EdgeState,
    *,
    by: str,
    why: str,
    now: float,
    undoes: int | None = None,
) -> Edge:
    """Stores this state of an edge, which may be new, and records the change in its history.

    Args:
        txn: The transaction.
        triple: Source id, target id and relation of the edge.
        state: The new state.
        by: The author of the change.
        why: The reason, for readers.
        now: The time, in epoch seconds.
        undoes: Id of the change that this one undoes.

    Returns:
        The edge as stored.

    Raises:
        SpeckitError: E032 for a 21st edge of a memory.
    """
    return _put(txn, triple, edge_between(txn.connection, *triple), state, by=by, why=why, now=now, undoes=undoes)


def _put(
    txn: Transaction,
    triple: tuple[int, int, str],
    known: Edge | None,
    state: EdgeState,
    *,
    by: str,
    why: str,
    now: float,
    undoes: int | None = None,
) -> Edge:
    connection = txn.connection
    before = None if known is None else EdgeState.of(known)
    if known is None:
        for memory_id in _full(connection, triple[:2]):
            if _full(connection, [memory_id]):  # the room made for the other end may be that of their own edge
                _make_room(txn, memory_id)
    elif before == state:
        return known
    with txn.part():
        stored = rows(
            connection,
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, said, "
            "created_at, principal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source_id, target_id, relation) "
            "DO UPDATE SET strength = excluded.strength, evidence = excluded.evidence, "
            f"created_by = excluded.created_by, said = excluded.said RETURNING {_COLUMNS}",
            (*triple, *state, now, txn.principal),
        )
        edge_history.record(txn, triple, before, state, by=by, why=why, now=now, undoes=undoes)
        changes.record(txn, triple[:2], "edges")
    return _edge(stored[0])


def remove_edge(txn: Transaction, edge: Edge, *, by: str, why: str, now: float, undoes: int | None = None) -> None:
    """Removes a stored edge and records the change in its history.

    Args:
        txn: The transaction.
        edge: The edge.
        by: The author of the change.
        why: The reason, for readers.
        now: The time, in epoch seconds.
        undoes: Id of the change that this one undoes.
    """
    triple = (edge.source_id, edge.target_id, str(edge.relation))
    with txn.part():
        txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
        edge_history.record(txn, triple, EdgeState.of(edge), None, by=by, why=why, now=now, undoes=undoes)
        changes.record(txn, triple[:2], "edges")


def edge_with(connection: Connection, edge_id: int) -> Edge | None:
    """The edge with this id; None if there is none."""
    found = rows(connection, f"{_EDGE} WHERE id = ?", (edge_id,))
    return _edge(found[0]) if found else None


def edge_between(connection: Connection, source_id: int, target_id: int, relation: str) -> Edge | None:
    """The edge "source RELATION target".

    Args:
        connection: A connection to the store.
        source_id: Id of the source memory.
        target_id: Id of the target memory.
        relation: The relation.

    Returns:
        The edge; None if there is none.
    """
    found = rows(
        connection,
        f"{_EDGE} WHERE source_id = ? AND target_id = ? AND relation = ?",
        (source_id, target_id, str(relation)),
    )
    return _edge(found[0]) if found else None


def edges_by(connection: Connection, created_by: str, memory_id: int | None = None) -> list[Edge]:
    """The edges of one origin, by id: all of them, or those of a memory."""
    # no index begins with `created_by`: this reads the whole table
    found = rows(
        connection,
        f"{_EDGE} WHERE created_by = ?1 AND (source_id = ?2 OR target_id = ?2 OR ?2 IS NULL) ORDER BY id",
        (created_by, memory_id),
    )
    return [_edge(row) for row in found]


def degree(connection: Connection, memory_id: int) -> int:
    """Number of edges of a memory, incoming and outgoing."""
    # each half of the OR has an index, for outgoing and for incoming edges
    number: int = value(
        connection, "SELECT count(*) FROM causal_edges WHERE source_id = ?1 OR target_id = ?1", (memory_id,)
    )
    return number


def edge_count(connection: Connection) -> int:
    """Number of edges in the store."""
    number: int = value(connection, "SELECT count(*) FROM causal_edges")
    return number


def makers(connection: Connection) -> dict[str, int]:
    """Number of edges by `created_by`."""
    return dict(
        rows(connection, "SELECT created_by, count(*) FROM causal_edges GROUP BY created_by ORDER BY created_by")
    )


def _edge(row: tuple[int, int, int, str, float, str, str, float | None, str]) -> Edge:
    edge_id, source_id, target_id, relation, strength, evidence, created_by, said, principal = row
    return Edge(edge_id, source_id, target_id, Relation(relation), strength, evidence, created_by, said, principal)


def gives_way(edge: Edge) -> bool:
    """Whether an edge comes from a mere mention in a text, so that any other edge may replace it."""
    return edge.created_by == "document" and edge.evidence.startswith(MENTION)


def _full(connection: Connection, memories: Sequence[int]) -> list[int]:
    """Those of these memories that have no room for another edge."""
    counted = rows(
        connection,
        "SELECT value, (SELECT count(*) FROM causal_edges WHERE source_id = value OR target_id = value) FROM carray(?)",
        (integers(memories),),
    )
    return [memory for memory, edges in counted if not has_room(edges)]


def _make_room(txn: Transaction, memory_id: int) -> None:
    """Removes the weakest mention edge of a memory without room for another edge; its link stays and may be resolved
    again. Raises E032 if it has none."""
    edge = _weakest_mention(txn.connection, memory_id)
    txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
    changes.record(txn, (edge.source_id, edge.target_id), "edges")


def _weakest_mention(connection: Connection, memory_id: int) -> Edge:
    """The edge of a full memory that gives way to another one. Raises E032 if none does."""
    mentions = list(filter(gives_way, edges_by(connection, "document", memory_id)))
    if not mentions:
        key = value(connection, "SELECT key FROM memories WHERE id = ?", (memory_id,))
        raise SpeckitError(
            "E032",
            f"memory {memory_id} already has {EDGES_PER_NODE} edges: {key}",
            actions=("remove one of its edges: `speckit-memory lineage` shows them with their ids",),
        )
    return min(mentions, key=lambda edge: (edge.strength, -edge.id))


def _require_values(source_id: int, target_id: int, strength: float, created_by: str) -> None:
    if source_id == target_id:
        raise SpeckitError("E030", f"memory {source_id} cannot have an edge to itself")
    if not created_by:
        raise SpeckitError("E030", "an edge needs the name of its creator", hint="For example: manual.")
    if not 0.0 <= strength <= strongest(created_by):
        limit = strongest(created_by)
        raise SpeckitError("E032", f"strength is {strength}, accepted for '{created_by}': 0 to {limit}")
