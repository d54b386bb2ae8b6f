"""Causal edges between memories (feature M7).

`created_by` names the origin of an edge: `manual` (made by a person or an agent), `document` (declared in a document,
see `memory.store.writing.links`), or the name of an automatic process. All writers of edges use this module or check
its limits by `has_room` and `strongest`; violations are reported to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.missing import MissingMemoryError
from speckit_memory.memory.store.records import MENTION, Edge, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import EdgeChange, EdgeState

EDGES_PER_NODE = 20
"""Maximum number of edges of a memory, incoming and outgoing together."""
STRONGEST_AUTOMATIC = 0.5
DELIBERATE = ("manual", "document")
"""Origins of edges that automatic processes may not take over, remove or weaken below the given strength."""

Triple = tuple[int, int, str]
"""Source id, target id and relation of an edge."""
_COLUMNS = "id, source_id, target_id, relation, strength, evidence, created_by, said, principal"
_EDGE = f"SELECT {_COLUMNS} FROM causal_edges"


def strongest(created_by: str) -> float:
    """The maximum strength of an edge of this origin: 1, or 0.5 for automatic processes."""
    return 1.0 if created_by in DELIBERATE else STRONGEST_AUTOMATIC


def has_room(edges: int) -> bool:
    """Whether a memory with this number of edges may get another one."""
    return edges < EDGES_PER_NODE


class EdgeBatch:
    """Edges that are added or changed together: what they depend on is read at once, and they are written at once.

    Each one sees those before it. The history of edges and the log of changes have them in their order.
    """

    def __init__(self, txn: Transaction, memories: Iterable[int], *, by: str, now: float) -> None:
        """Reads the edges of some memories; others are read when they are needed.

        Args:
            txn: The transaction.
            memories: Ids of the memories that are expected at the ends of the edges.
            by: The author of the changes.
            now: The time, in epoch seconds.
        """
        self._txn = txn
        self._by = by
        self._now = now
        self._edges: dict[Triple, Edge] = {}
        self._of: dict[int, set[Triple]] = {}
        """The edges of each memory that was read; missing memories have no entry."""
        self._gone: set[int] = set()
        self._stored: dict[Triple, EdgeState] = {}
        self._changes: list[EdgeChange] = []
        self._changed_ends: list[int] = []
        self._read(memories)

    def add(self, source_id: int, target_id: int, relation: Relation, strength: float, evidence: str) -> None:
        """Adds or changes an edge as `add_edge` does.

        Args:
            source_id: Id of the source memory.
            target_id: Id of the target memory, another one.
            relation: The relation.
            strength: In [0, 1]; at most 0.5 for an automatic process.
            evidence: The reason for the edge, for readers.

        Raises:
            SpeckitError: E030, E032 and E080 as `add_edge`.
        """
        _require_values(source_id, target_id, strength, self._by)
        triple = (source_id, target_id, str(relation))
        known = self.known(triple)
        if known is None or self._by in DELIBERATE or known.created_by not in DELIBERATE:
            self.put(triple, EdgeState(strength, evidence, self._by, None), why=evidence)

    def put(self, triple: Triple, state: EdgeState, *, why: str, undoes: int | None = None) -> None:
        """Stores a state of an edge as `put_state` does.

        Args:
            triple: Source id, target id and relation of the edge.
            state: The new state.
            why: The reason, for readers.
            undoes: Id of the change that this one undoes.

        Raises:
            SpeckitError: E032 for a 21st edge of a memory, E080 for a missing one.
        """
        source_id, target_id, relation = triple
        known = self.known(triple)
        before = None if known is None else EdgeState.of(known)
        if before == state:
            return
        if known is None:
            for memory_id in triple[:2]:  # the room made for one end may be that of the other
                if (edge := self.giving_way(memory_id)) is not None:
                    self._remove(edge)
            known = Edge(0, source_id, target_id, Relation(relation), *state, self._txn.principal)
        self._insert(replace(known, **state._asdict()))
        self._stored[triple] = state
        self._changes.append(
            EdgeChange(0, source_id, target_id, Relation(relation), self._now, self._by, why, before, state, undoes)
        )
        self._changed_ends += triple[:2]

    def known(self, triple: Triple) -> Edge | None:
        """The edge as it is now; None if there is none. Raises E080 for a missing memory."""
        self._read(triple[:2])
        for memory_id in triple[:2]:
            if memory_id not in self._of:
                raise MissingMemoryError(memory_id)
        return self._edges.get(triple)

    def giving_way(self, memory_id: int) -> Edge | None:
        """The weakest mention edge of a memory without room for another edge; None if there is room. Raises E032 if it
        has none."""
        triples = self._of.get(memory_id, set())
        if has_room(len(triples)):
            return None
        mentions = [edge for triple in triples if gives_way(edge := self._edges[triple])]
        if not mentions:
            key = value(self._txn.connection, "SELECT key FROM memories WHERE id = ?", (memory_id,))
            raise SpeckitError(
                "E032",
                f"memory {memory_id} already has {EDGES_PER_NODE} edges: {key}",
                actions=("remove one of its edges: `speckit-memory lineage` shows them with their ids",),
            )
        return min(mentions, key=lambda edge: (edge.strength, -edge.id))

    def write(self) -> None:
        """Writes the edges, their history and the log of changes, together or none of them."""
        if not self._changed_ends:
            return
        connection = self._txn.connection
        with self._txn.part():
            connection.executemany(
                "DELETE FROM causal_edges WHERE id = ?", [(number,) for number in sorted(self._gone)]
            )
            stored = [(triple, state, self._edges[triple].id) for triple, state in self._stored.items()]
            connection.executemany(
                "UPDATE causal_edges SET strength = ?, evidence = ?, created_by = ?, said = ? WHERE id = ?",
                [(*state, number) for _, state, number in stored if number],
            )
            connection.executemany(
                "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, said, "
                "created_at, principal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(*triple, *state, self._now, self._txn.principal) for triple, state, number in stored if not number],
            )
            edge_history.record(self._txn, self._changes)
            changes.record(self._txn, self._changed_ends, "edges")

    def _read(self, memories: Iterable[int]) -> None:
        missing = integers(sorted({memory_id for memory_id in memories if memory_id not in self._of}))
        if missing is None:
            return
        connection = self._txn.connection
        chosen = "IN (SELECT value FROM carray(?1))"
        there = rows(connection, f"SELECT id FROM memories WHERE id {chosen}", (missing,))
        self._of |= {memory_id: set() for (memory_id,) in there}
        # two halves instead of an OR, each from an index
        both = f"{_EDGE} WHERE source_id {chosen} UNION {_EDGE} WHERE target_id {chosen}"
        for edge in map(_edge, rows(connection, both, (missing,))):
            if edge.id not in self._gone:
                self._insert(self._edges.get(_triple(edge), edge))

    def _insert(self, edge: Edge) -> None:
        triple = _triple(edge)
        self._edges[triple] = edge
        for memory_id in triple[:2]:
            if memory_id in self._of:
                self._of[memory_id].add(triple)

    def _remove(self, edge: Edge) -> None:
        """Removes a mention edge; its link stays and may be resolved again."""
        triple = _triple(edge)
        for memory_id in triple[:2]:
            if memory_id in self._of:
                self._of[memory_id].remove(triple)
        del self._edges[triple]
        self._stored.pop(triple, None)
        self._gone.add(edge.id)
        self._changed_ends += triple[:2]


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
    batch = EdgeBatch(txn, (source_id, target_id), by=created_by, now=now)
    batch.add(source_id, target_id, relation, strength, evidence)
    batch.write()
    return _stored(txn, (source_id, target_id, str(relation)))


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
    if new:
        batch = EdgeBatch(txn, (source_id, target_id), by=state.created_by, now=0.0)
        for memory_id in (source_id, target_id):
            batch.giving_way(memory_id)


def put_state(
    txn: Transaction,
    triple: Triple,
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
    batch = EdgeBatch(txn, triple[:2], by=by, now=now)
    batch.put(triple, state, why=why, undoes=undoes)
    batch.write()
    return _stored(txn, triple)


def _stored(txn: Transaction, triple: Triple) -> Edge:
    return _edge(rows(txn.connection, f"{_EDGE} WHERE source_id = ? AND target_id = ? AND relation = ?", triple)[0])


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
    ends = (edge.source_id, edge.target_id)
    with txn.part():
        txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
        gone = EdgeChange(0, *ends, edge.relation, now, by, why, EdgeState.of(edge), None, undoes)
        edge_history.record(txn, [gone])
        changes.record(txn, ends, "edges")


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


def _triple(edge: Edge) -> Triple:
    return edge.source_id, edge.target_id, str(edge.relation)


def gives_way(edge: Edge) -> bool:
    """Whether an edge comes from a mere mention in a text, so that any other edge may replace it."""
    return edge.created_by == "document" and edge.evidence.startswith(MENTION)


def _require_values(source_id: int, target_id: int, strength: float, created_by: str) -> None:
    if source_id == target_id:
        raise SpeckitError("E030", f"memory {source_id} cannot have an edge to itself")
    if not created_by:
        raise SpeckitError("E030", "an edge needs the name of its creator", hint="For example: manual.")
    if not 0.0 <= strength <= strongest(created_by):
        limit = strongest(created_by)
        raise SpeckitError("E032", f"strength is {strength}, accepted for '{created_by}': 0 to {limit}")
