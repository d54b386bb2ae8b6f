"""Adds, removes and lists causal edges between memories named by key."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speckit_memory.errors import SpeckitError, refused
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts, value
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Edge, Relation
from speckit_memory.memory.store.tables.graph import edge_history
from speckit_memory.memory.store.tables.graph.edge_history import EdgeChange, EdgeState
from speckit_memory.memory.store.tables.graph.edges import EdgeBatch
from speckit_memory.memory.store.writing import link_changes
from speckit_memory.memory.store.writing.link_changes import Documents

MANUAL = "manual"
"""The maker of edges that a person or an agent asks for."""
MOST_CHANGES = 100
"""Default limit of listed changes."""
WANTED_COVERAGE = 0.6
"""The share of memories with a link from which on a graph counts as complete."""


@dataclass(frozen=True, slots=True)
class NamedEdge:
    """An edge with the keys of its ends.

    `created_by` is its origin, and `principal` who added it, "" for none.
    `said` is the strength its maker gave, if use has changed it. `only_stored` says why no document declares an edge
    that was just made, "" if one does.
    """

    id: int
    source: str
    relation: str
    target: str
    strength: float
    evidence: str
    created_by: str
    said: float | None = None
    only_stored: str = ""
    principal: str = ""

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            name: told
            for name in self.__slots__
            if (told := getattr(self, name)) not in (None, "") or name == "evidence"
        }


@dataclass(frozen=True, slots=True)
class NamedChange:
    """A change of an edge, with the keys of its ends; a strength of None means no edge."""

    id: int
    source: str
    relation: str
    target: str
    changed_at: float
    changed_by: str
    why: str
    old: float | None
    new: float | None
    undoes: int | None
    undone_by: int | None

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class UndoneChanges:
    """The changes that were reverted, latest first, and those that could not be, each with its reason."""

    undone: tuple[NamedChange, ...]
    refused: tuple[tuple[NamedChange, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStats:
    """Statistics of the causal graph: `covered` memories have a link, `strength` is the mean, 0 without links."""

    links: int
    memories: int
    covered: int
    strength: float
    by_relation: dict[str, int]
    by_maker: dict[str, int]

    @property
    def coverage(self) -> float:
        """The share of memories with a link, in [0, 1]."""
        return self.covered / self.memories if self.memories else 0.0


def link(database: Database, edges: Iterable[tuple[str, str, str, float]], created_by: str) -> int:
    """Adds edges (source key, relation, target key, strength), all or none; returns their number.

    Raises E030, E032 and E080.
    """
    wanted = list(edges)
    names = texts({name for source, _, target, _ in wanted for name in (source, target)})
    with database.write() as txn:
        ids = dict(
            rows(txn.connection, "SELECT key, id FROM memories WHERE key IN (SELECT value FROM carray(?))", (names,))
        )
        batch = EdgeBatch(txn, ids.values(), by=created_by, now=time.time())
        for source, relation, target, strength in wanted:
            ends = [ids[end] if end in ids else reader.get_memory(txn.connection, end).id for end in (source, target)]
            batch.add(ends[0], ends[1], _relation(relation), strength, "")
        batch.write()
    return len(wanted)


def link_one(
    database: Database,
    source: int | str,
    relation: str,
    target: int | str,
    strength: float | None,
    evidence: str,
    documents: Documents,
) -> NamedEdge:
    """Adds or changes one edge by hand.

    Args:
        database: The store's file.
        source: A memory, by id or key.
        relation: One of the six relations.
        target: A memory, by id or key.
        strength: In [0, 1]; None leaves it unchanged, 1 for a new edge.
        evidence: A text that supports the edge; "" leaves it unchanged.
        documents: Edits the front matter that declares the edge.

    Raises:
        SpeckitError: E030, E032 and E080.
    """
    with database.write() as txn:
        ends = (reader.get_memory(txn.connection, source).id, reader.get_memory(txn.connection, target).id)
        edge, reason = link_changes.link(
            txn, ends, _relation(relation), strength, evidence, documents, by=MANUAL, now=time.time()
        )
        return replace(_named_edge(txn.connection, edge), only_stored=reason)


def unlink(database: Database, edge_id: int, documents: Documents) -> tuple[NamedEdge, NamedEdge | None]:
    """Removes an edge by hand. Returns it, and the edge that a document declares in its place. Raises E080, E083."""
    with database.write() as txn:
        removed, declared = link_changes.unlink(txn, edge_id, documents, by=MANUAL, why="", now=time.time())
        named = _named_edge(txn.connection, removed)
        return named, _named_edge(txn.connection, declared) if declared else None


def history(database: Database, name: int | str | None, by: str, limit: int) -> tuple[NamedChange, ...]:
    """The changes of edges, latest first.

    Args:
        database: The store's file.
        name: Only edges of this memory, by id or key; None for all.
        by: Only changes by this maker; "" for all.
        limit: Maximum number of changes.

    Raises:
        SpeckitError: E080.
    """
    with database.snapshot_read() as connection:
        memory = None if name is None else reader.get_memory(connection, name).id
        return _named_changes(connection, edge_history.changes(connection, memory=memory, by=by, limit=limit))


def undo(database: Database, numbers: Sequence[int], documents: Documents) -> UndoneChanges:
    """Reverts changes, all or none, the latest first. Raises E032, E080, E083."""
    with database.write() as txn:
        now = time.time()
        # Latest first: a change that builds on an earlier one is reverted before it.
        last_first = sorted(set(numbers), reverse=True)
        done = [link_changes.undo(txn, number, documents, by=MANUAL, now=now) for number in last_first]
        return UndoneChanges(_named_changes(txn.connection, done))


def undo_by(database: Database, maker: str, since: float, documents: Documents) -> UndoneChanges:
    """Reverts the changes of a maker where possible, and lists the others.

    Args:
        database: The store's file.
        maker: Who made the changes.
        since: Only changes from this time on, in epoch seconds.
        documents: Edits the front matter that declares the edges.
    """
    with database.write() as txn:
        done, refused = link_changes.undo_all(txn, maker, documents, since=since, by=MANUAL, now=time.time())
        named = _named_changes(txn.connection, [change for change, _ in refused])
        reasons = [why for _, why in refused]
        return UndoneChanges(_named_changes(txn.connection, done), tuple(zip(named, reasons, strict=True)))


def stats(database: Database) -> LinkStats:
    """Statistics of the causal graph."""
    with database.snapshot_read() as connection:

        def grouped(column: str) -> dict[str, int]:
            # {column} is one of the two names below, never user input.
            counted = f"SELECT {column}, count(*) FROM causal_edges GROUP BY {column} ORDER BY count(*) DESC, {column}"
            return dict(rows(connection, counted))

        return LinkStats(
            links=value(connection, "SELECT count(*) FROM causal_edges"),
            memories=value(connection, "SELECT count(*) FROM memories"),
            covered=value(
                connection,
                # UNION removes duplicates: a memory with links in both directions counts once.
                "SELECT count(*) FROM (SELECT source_id FROM causal_edges UNION SELECT target_id FROM causal_edges)",
            ),
            strength=value(connection, "SELECT coalesce(avg(strength), 0.0) FROM causal_edges"),
            by_relation=grouped("relation"),
            by_maker=grouped("created_by"),
        )


def _named_edge(connection: Connection, edge: Edge) -> NamedEdge:
    return _named(edge, _keys(connection, [edge.source_id, edge.target_id]))


def _named(edge: Edge, keys: Mapping[int, str]) -> NamedEdge:
    return NamedEdge(
        edge.id,
        keys[edge.source_id],
        str(edge.relation),
        keys[edge.target_id],
        edge.strength,
        edge.evidence,
        edge.created_by,
        edge.said,
        principal=edge.principal,
    )


def _named_changes(connection: Connection, changes: Sequence[EdgeChange]) -> tuple[NamedChange, ...]:
    keys = _keys(connection, sorted({end for change in changes for end in (change.source_id, change.target_id)}))
    return tuple(
        NamedChange(
            change.id,
            keys[change.source_id],
            str(change.relation),
            keys[change.target_id],
            change.changed_at,
            change.changed_by,
            change.why,
            _strength(change.before),
            _strength(change.after),
            change.undoes,
            change.undone_by,
        )
        for change in changes
    )


def _keys(connection: Connection, memories: Sequence[int]) -> dict[int, str]:
    # carray binds the whole list to one parameter, so that one prepared statement serves any number of ids
    wanted = "SELECT id, key FROM memories WHERE id IN (SELECT value FROM carray(?))"
    return dict(rows(connection, wanted, (integers(memories),)))


def _strength(state: EdgeState | None) -> float | None:
    return None if state is None else state.strength


def _relation(name: str) -> Relation:
    if name not in list(Relation):
        raise SpeckitError.of([refused("the relation", name, Relation)])
    return Relation(name)
