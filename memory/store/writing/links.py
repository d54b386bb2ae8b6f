"""Turns the links that documents declare into causal edges (feature I3).

Declarations are stored as written. The edges are a function of the declarations and the stored memories, so that the
order in which documents arrive does not matter, and a link is resolved whenever its target appears or returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.records import MENTION, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import EdgeChange, EdgeState
from speckit_memory.memory.store.tables.graph.edges import has_room
from speckit_memory.memory.store.tables.graph.link_targets import find_targets, note_memories

Triple = tuple[int, int, str]


class DeclaredEdge(NamedTuple):
    """A document's declaration of an edge."""

    strength: float
    evidence: str


class StoredEdge(NamedTuple):
    """An existing edge: the strength and evidence given by its creator, and its present strength."""

    id: int
    said: DeclaredEdge
    by: str
    strength: float

    @property
    def state(self) -> EdgeState:
        """The state in the form of the history of edges."""
        own = self.said.strength
        return EdgeState(self.strength, self.said.evidence, self.by, None if own == self.strength else own)


class Neighbourhood(NamedTuple):
    """The existing and the declared edges around some memories."""

    memories: frozenset[int]
    existing: dict[Triple, StoredEdge]
    declared: dict[Triple, DeclaredEdge]


def resolve_links(txn: Transaction, now: float, left_out: list[Triple] | None = None) -> int:
    """Updates the edges with `created_by` "document" to those that documents declare; returns the number of new ones.

    Links to the memory itself, to missing memories and to ambiguous targets make no edge. A declaration takes over an
    edge of an automatic process, but not a manual one. If a memory would get more than 20 edges, its strongest
    declarations count; the others, except mentions, are appended to `left_out`. Only changed memories and their
    surroundings are examined. Strength gained by use is kept while the declaration stays the same.
    """
    connection = txn.connection
    find_targets(txn)
    around = _around_changes(txn)
    # The difference between existing and wanted edges is applied: deletions, changes, insertions.
    existing, wanted = around.existing, _within_limit(connection, around)
    gone = [triple for triple, made in existing.items() if made.by == "document" and triple not in wanted]
    new = [triple for triple in wanted if triple not in existing]
    changed = [t for t, said in wanted.items() if t in existing and not _is(existing[t], said)]
    if left_out is not None:
        declared = {triple for triple, said in around.declared.items() if not said.evidence.startswith(MENTION)}
        left_out += sorted(declared - wanted.keys())
    # edges, their history and the log of changes together, or none of them
    with txn.part():
        connection.executemany("DELETE FROM causal_edges WHERE id = ?", [(existing[triple].id,) for triple in gone])
        connection.executemany(
            "UPDATE causal_edges SET strength = ?, evidence = ?, created_by = 'document', said = NULL WHERE id = ?",
            [(*wanted[triple], existing[triple].id) for triple in changed],
        )
        made = [(triple, EdgeState(*wanted[triple], "document", None)) for triple in changed]
        edge_history.record(
            txn,
            [
                EdgeChange(0, *triple[:2], Relation(triple[2]), now, state.created_by, state.evidence, before, state)
                for triple, state in made
                for before in (existing[triple].state,)
            ],
        )
        connection.executemany(
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at, "
            "principal) VALUES (?, ?, ?, ?, ?, 'document', ?, ?)",
            [(*triple, *wanted[triple], now, txn.principal) for triple in new],
        )
        connection.execute("DELETE FROM changed_links")
        changes.record(txn, sorted(_ends((*gone, *changed, *new))), "edges")
    return len(new)


def _around_changes(txn: Transaction) -> Neighbourhood:
    """The edges around changed memories, and around full memories whose edges may be displaced or admitted."""
    while True:
        around = _around(txn.connection)
        existing, declared = around.existing, around.declared
        touched = {t for t, said in declared.items() if t not in existing or not _is(existing[t], said)}
        touched |= {t for t, made in existing.items() if made.by == "document" and t not in declared}
        others = _ends(touched) - around.memories
        degrees = _degrees(txn.connection, others)
        for triple in touched - existing.keys():
            degrees.update(others.intersection(triple[:2]))
        full = [memory_id for memory_id, degree in degrees.items() if not has_room(degree)]
        # A full neighbour decides anew which of its edges fit, which may touch further memories: repeat until stable.
        if not full:
            return around
        note_memories(txn, full)


def _around(connection: Connection) -> Neighbourhood:
    """The edges around the memories in `changed_links`; the strongest declaration of each edge counts, and declarations
    of manual edges are ignored."""
    # each half of the OR has an index, for outgoing and for incoming edges
    existing = {
        (source, target, relation): StoredEdge(edge_id, DeclaredEdge(said, evidence), created_by, strength)
        for edge_id, source, target, relation, strength, said, evidence, created_by in rows(
            connection,
            "SELECT id, source_id, target_id, relation, strength, coalesce(said, strength), evidence, created_by "
            "FROM causal_edges "
            "WHERE source_id IN (SELECT memory_id FROM changed_links) "
            "OR target_id IN (SELECT memory_id FROM changed_links) ORDER BY id",
        )
    }
    declared: dict[Triple, DeclaredEdge] = {}
    for memory_id, other, relation, strength, evidence, reverse in rows(
        connection,
        "SELECT memory_id, target_id, relation, strength, evidence, reverse FROM declared_links "
        "WHERE target_id <> memory_id AND (memory_id IN (SELECT memory_id FROM changed_links) "
        "OR target_id IN (SELECT memory_id FROM changed_links)) ORDER BY memory_id, ordinal",
    ):
        triple = (other, memory_id, relation) if reverse else (memory_id, other, relation)
        if triple in existing and existing[triple].by == "manual":
            continue
        if triple not in declared or strength > declared[triple].strength:
            declared[triple] = DeclaredEdge(strength, evidence)
    memories = frozenset(memory_id for (memory_id,) in rows(connection, "SELECT memory_id FROM changed_links"))
    return Neighbourhood(memories, existing, declared)


def _within_limit(connection: Connection, around: Neighbourhood) -> dict[Triple, DeclaredEdge]:
    """The declarations for which other edges leave room within the limit, strongest first, then by ids."""
    declared = around.declared
    taken = {triple for triple, made in around.existing.items() if made.by != "document"}
    degrees = _degrees(connection, _ends(declared))
    # Existing document edges do not count against the limit: all declarations compete again.
    for source, target, _ in around.existing.keys() - taken:
        degrees.subtract((source, target))
    fitting: dict[Triple, DeclaredEdge] = {}
    # greedy by strength; ties by ids, so that the result does not depend on the order of arrival
    for triple in sorted(declared, key=lambda triple: (-declared[triple].strength, triple)):
        source, target, _ = triple
        if triple not in taken:
            if not has_room(max(degrees[source], degrees[target])):
                continue
            degrees.update((source, target))
        fitting[triple] = declared[triple]
    return fitting


def _degrees(connection: Connection, memories: Iterable[int]) -> Counter[int]:
    """The number of edges of each memory."""
    # two counts instead of an OR, each from an index
    found = rows(
        connection,
        "SELECT value, (SELECT count(*) FROM causal_edges WHERE source_id = value) + "
        "(SELECT count(*) FROM causal_edges WHERE target_id = value) FROM carray(?)",
        (integers(sorted(memories)),),
    )
    return Counter(dict(found))


def _is(made: StoredEdge, said: DeclaredEdge) -> bool:
    """Whether an edge equals a document's declaration."""
    return made.by == "document" and made.said == said


def _ends(triples: Iterable[Triple]) -> set[int]:
    return {memory_id for source, target, _ in triples for memory_id in (source, target)}
