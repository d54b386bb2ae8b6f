"""Links that documents declare, turned into causal edges (feature I3).

Declarations are kept as written. The edges made from them are a function of what is declared and what is stored, so it
does not matter in which order documents arrive, and a link finds its target whenever that appears or comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.records import MENTION
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import State
from speckit_memory.memory.store.tables.graph.edges import has_room
from speckit_memory.memory.store.tables.graph.link_targets import find_targets, note_memories

Triple = tuple[int, int, str]


class Declared(NamedTuple):
    """What a document says about an edge."""

    strength: float
    evidence: str


class Made(NamedTuple):
    """An edge there is: what its maker said of it, and its strength now."""

    id: int
    said: Declared
    by: str
    strength: float

    @property
    def state(self) -> State:
        """As the history of edges knows it."""
        own = self.said.strength
        return State(self.strength, self.said.evidence, self.by, None if own == self.strength else own)


class Around(NamedTuple):
    """The edges there are around some memories, and those that documents declare."""

    memories: frozenset[int]
    existing: dict[Triple, Made]
    declared: dict[Triple, Declared]


def resolve_links(txn: Transaction, now: float, left_out: list[Triple] | None = None) -> int:
    """Makes the edges of `created_by` "document" exactly those that documents declare; returns how many are new.

    Links to the memory itself, to what is not stored and to what may be several memories make no edge. A declaration
    takes over an edge that an automatic process made, and leaves a manual one alone. Where a memory would get more than
    20 edges, its strongest declarations count; `left_out` is given the others, mentions excepted. Only memories around
    which something changed are looked at. What use has added to an edge stays as long as its declaration does.
    """
    connection = txn.connection
    find_targets(txn)
    around = _around_changes(txn)
    existing, wanted = around.existing, _within_limit(connection, around)
    gone = [triple for triple, made in existing.items() if made.by == "document" and triple not in wanted]
    new = [triple for triple in wanted if triple not in existing]
    changed = [t for t, said in wanted.items() if t in existing and not _is(existing[t], said)]
    if left_out is not None:
        declared = {triple for triple, said in around.declared.items() if not said.evidence.startswith(MENTION)}
        left_out += sorted(declared - wanted.keys())
    with txn.part():
        connection.executemany("DELETE FROM causal_edges WHERE id = ?", [(existing[triple].id,) for triple in gone])
        connection.executemany(
            "UPDATE causal_edges SET strength = ?, evidence = ?, created_by = 'document', said = NULL WHERE id = ?",
            [(*wanted[triple], existing[triple].id) for triple in changed],
        )
        for triple in changed:
            after = State(*wanted[triple], "document", None)
            edge_history.record(txn, triple, existing[triple].state, after, by="document", why=after.evidence, now=now)
        connection.executemany(
            "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at) "
            "VALUES (?, ?, ?, ?, ?, 'document', ?)",
            [(*triple, *wanted[triple], now) for triple in new],
        )
        connection.execute("DELETE FROM changed_links")
        changes.record(txn, sorted(_ends((*gone, *changed, *new))), "edges")
    return len(new)


def _around_changes(txn: Transaction) -> Around:
    """What is around the changed memories and around those full ones whose edges that may push out or let in."""
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
        if not full:
            return around
        note_memories(txn, full)


def _around(connection: Connection) -> Around:
    """The strongest declaration of each edge counts; those that are made by hand need none."""
    existing = {
        (source, target, relation): Made(edge_id, Declared(said, evidence), created_by, strength)
        for edge_id, source, target, relation, strength, said, evidence, created_by in rows(
            connection,
            "SELECT id, source_id, target_id, relation, strength, coalesce(said, strength), evidence, created_by "
            "FROM causal_edges "
            "WHERE source_id IN (SELECT memory_id FROM changed_links) "
            "OR target_id IN (SELECT memory_id FROM changed_links) ORDER BY id",
        )
    }
    declared: dict[Triple, Declared] = {}
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
            declared[triple] = Declared(strength, evidence)
    memories = frozenset(memory_id for (memory_id,) in rows(connection, "SELECT memory_id FROM changed_links"))
    return Around(memories, existing, declared)


def _within_limit(connection: Connection, around: Around) -> dict[Triple, Declared]:
    """The declarations that fit beside the other edges, strongest first, then by their ids."""
    declared = around.declared
    taken = {triple for triple, made in around.existing.items() if made.by != "document"}
    degrees = _degrees(connection, _ends(declared))
    for source, target, _ in around.existing.keys() - taken:
        degrees.subtract((source, target))
    fitting: dict[Triple, Declared] = {}
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
    found = rows(
        connection,
        "SELECT value, (SELECT count(*) FROM causal_edges WHERE source_id = value) + "
        "(SELECT count(*) FROM causal_edges WHERE target_id = value) FROM carray(?)",
        (integers(sorted(memories)),),
    )
    return Counter(dict(found))


def _is(made: Made, said: Declared) -> bool:
    """Whether an edge is the one that a document declares."""
    return made.by == "document" and made.said == said


def _ends(triples: Iterable[Triple]) -> set[int]:
    return {memory_id for source, target, _ in triples for memory_id in (source, target)}
