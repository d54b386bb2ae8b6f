"""Links that are made and taken away one by one, and changes of links that are taken back (feature M7).

Where the document of a memory can be edited it declares the link, and the edge is one of `created_by` "document": so
whoever has the files has the links. Only where it cannot is the edge a manual one, of this store alone.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.records import Edge, Link, Relation
from speckit_memory.memory.store.tables.graph import edge_history, edges
from speckit_memory.memory.store.tables.graph.edge_history import Change, State
from speckit_memory.memory.store.tables.graph.link_targets import note_memories
from speckit_memory.memory.store.writing.links import resolve_links


class Documents(Protocol):
    """What edits the links that documents declare."""

    def declare(self, source: str, target: str, relation: Relation, strength: float, evidence: str) -> tuple[Link, str]:
        """Declares an edge between two keys; returns the link and why its document cannot, "" where it does."""

    def withdraw(self, key: str, relation: Relation, reverse: bool, targets: Collection[str]) -> str:
        """Takes links out of a document; returns why that cannot be, "" where it is done."""

    def part(self) -> AbstractContextManager[None]:
        """Changes that are put back when one of them fails."""


class Linked(NamedTuple):
    """A link that was made, and why it is in no document, "" where it is."""

    edge: Edge
    reason: str


class Unlinked(NamedTuple):
    """A link that was taken away, and the one that stands in its place because a document declares it."""

    edge: Edge
    declared: Edge | None


class Undone(NamedTuple):
    """The changes that were taken back, last first, and those that could not be, with the reason."""

    changes: tuple[Change, ...]
    refused: tuple[tuple[Change, str], ...] = ()


def link(
    txn: Transaction,
    ends: tuple[int, int],
    relation: Relation,
    strength: float | None,
    evidence: str,
    documents: Documents,
    *,
    by: str,
    now: float,
) -> Linked:
    """Makes the edge "source RELATION target", or changes the one there is: what is not given (None, "") stays.

    Raises as `edges.add_edge`.
    """
    known = edges.edge_between(txn.connection, *ends, str(relation))
    if known is not None:
        evidence, own = evidence or known.evidence, known.strength if known.said is None else known.said
        if strength is None and known.created_by in edges.DELIBERATE and not edges.gives_way(known):
            strength = own
        if known.created_by == "document" and (own, known.evidence) == (strength, evidence):
            return Linked(known, "")
    state = State(1.0 if strength is None else strength, evidence, by, None)
    edges.require_possible(txn, *ends, state, new=known is None)
    return _declare(txn, ends, relation, state, documents, by=by, now=now)


def unlink(txn: Transaction, edge_id: int, documents: Documents, *, by: str, why: str, now: float) -> Unlinked:
    """Removes the edge with this id, and takes it out of the front matter that declares it.

    Raises E080 when there is none, E083 for one that a document declares which cannot be edited.
    """
    edge = edges.edge_with(txn.connection, edge_id)
    if edge is None:
        raise SpeckitError(
            "E080",
            f"there is no link with the id {edge_id}",
            hint="Lineages show the ids of links.",
            actions=("look with `memory_drift_why`", "look with `speckit-memory lineage`"),
        )
    _withdraw(txn, edge, documents)
    edges.remove_edge(txn, edge, by=by, why=why, now=now)
    return Unlinked(edge, _resolved(txn, edge, now))


def undo(txn: Transaction, number: int, documents: Documents, *, by: str, now: float) -> Change:
    """Makes an edge what it was before a change, in its document too.

    Raises E080 for an unknown change, E083 when it is not as the change left it, and E032 when a memory has no room
    for what was removed.
    """
    change = edge_history.change(txn.connection, number)
    if change is None:
        raise SpeckitError(
            "E080",
            f"there is no change {number}",
            hint="The history of links shows all there are.",
            actions=("look with `speckit-memory links history`",),
        )
    triple = (change.source_id, change.target_id, str(change.relation))
    current = edges.edge_between(txn.connection, *triple)
    _require_undoable(txn.connection, change, None if current is None else State.of(current))
    why = f"undoes change {number}"
    if current is not None and (change.before is None or change.before.created_by != "document"):
        _withdraw(txn, current, documents)
    if change.before is not None and change.before.created_by == "document":
        own = change.before.strength if change.before.said is None else change.before.said
        state = State(own, change.before.evidence, by, None)
        _declare(txn, triple[:2], change.relation, state, documents, by=by, now=now, undoes=number, why=why)
    elif change.before is not None:
        edges.put_state(txn, triple, change.before, by=by, why=why, now=now, undoes=number)
    elif current is not None:
        edges.remove_edge(txn, current, by=by, why=why, now=now, undoes=number)
        _resolved(txn, current, now)
    return change


def undo_all(txn: Transaction, maker: str, documents: Documents, *, since: float, by: str, now: float) -> Undone:
    """Takes back what `maker` changed from `since` (epoch seconds) on, last first; what cannot be is left and told."""
    done, refused = [], []
    for change in edge_history.changes(txn.connection, by=maker, undoable=True):
        if change.changed_at < since:
            continue
        try:
            with txn.part(), documents.part():
                done.append(undo(txn, change.id, documents, by=by, now=now))
        except SpeckitError as error:
            refused.append((change, error.problems[0].message))
    return Undone(tuple(done), tuple(refused))


def _require_undoable(connection: apsw.Connection, change: Change, current: State | None) -> None:
    if change.undone_by is not None:
        raise SpeckitError("E083", f"change {change.id} was undone by change {change.undone_by}")
    if change.changed_by == "document":
        raise SpeckitError("E083", f"change {change.id} was made by a document: {change.why}")
    if current != change.after:
        later: int | None = value(
            connection,
            "SELECT max(id) FROM edge_history WHERE source_id = ? AND target_id = ? AND relation = ? AND id > ?",
            (change.source_id, change.target_id, str(change.relation), change.id),
        )
        by = f" by change {later}" if later else ""
        raise SpeckitError("E083", f"the link was changed again{by} after change {change.id}")


def _resolved(txn: Transaction, edge: Edge, now: float) -> Edge | None:
    """What declarations make of the room that an edge left: links that did not fit before, and the same link."""
    note_memories(txn, (edge.source_id, edge.target_id))
    resolve_links(txn, now)
    return edges.edge_between(txn.connection, edge.source_id, edge.target_id, str(edge.relation))


def _declare(
    txn: Transaction,
    ends: tuple[int, int],
    relation: Relation,
    state: State,
    documents: Documents,
    *,
    by: str,
    now: float,
    undoes: int | None = None,
    why: str = "",
) -> Linked:
    """Makes an edge what `state` says, of its document where that can declare it; what else declares it goes."""
    source, target = (_key(txn.connection, end) for end in ends)
    link, reason = documents.declare(source, target, relation, state.strength, state.evidence)
    if not reason:
        declarer, other = ends[::-1] if link.reverse else ends
        for memory, key, name, reverse in _declarations(txn.connection, ends, relation):
            if (memory, name, reverse) == (declarer, link.target, link.reverse) or not documents.withdraw(
                key, relation, reverse, {name}
            ):
                _forget_declaration(txn, memory, name, relation, reverse)
        txn.connection.execute(
            "INSERT INTO declared_links (memory_id, ordinal, relation, target, strength, evidence, reverse, target_id) "
            "SELECT ?1, coalesce(max(ordinal), -1) + 1, ?2, ?3, ?4, ?5, ?6, ?7 FROM declared_links "
            "WHERE memory_id = ?1",
            (declarer, str(relation), link.target, link.strength, link.evidence, link.reverse, other),
        )
        state = state._replace(evidence=link.evidence, created_by="document")
    elif state.evidence:
        state = state._replace(evidence=link.evidence)
    triple = (*ends, str(relation))
    return Linked(edges.put_state(txn, triple, state, by=by, why=why or state.evidence, now=now, undoes=undoes), reason)


def _withdraw(txn: Transaction, edge: Edge, documents: Documents) -> None:
    """Takes an edge out of the front matter that declares it. Raises E083 where that is all there is and cannot be."""
    kept: list[tuple[str, str]] = []
    declarations = _declarations(txn.connection, (edge.source_id, edge.target_id), edge.relation)
    for memory, key, name, reverse in declarations:
        if reason := documents.withdraw(key, edge.relation, reverse, {name}):
            kept.append((key, reason))
        else:
            _forget_declaration(txn, memory, name, edge.relation, reverse)
    if edge.created_by == "document" and kept and len(kept) == len(declarations):
        raise SpeckitError(
            "E083",
            f"link {edge.id} is declared: {edge.evidence}",
            hint="; ".join(f"{key}: {reason}" for key, reason in kept),
            actions=(f"take it out of {kept[0][0]}, and index that",),
        )


def _declarations(
    connection: apsw.Connection, ends: tuple[int, int], relation: Relation
) -> list[tuple[int, str, str, bool]]:
    """Which memories declare an edge: id, key, the name of the target, and whether that is the source."""
    found = rows(
        connection,
        "SELECT DISTINCT m.id, m.key, d.target, d.reverse FROM declared_links d JOIN memories m ON m.id = d.memory_id "
        "WHERE d.relation = ?3 AND ((d.memory_id = ?1 AND d.target_id = ?2 AND NOT d.reverse) OR "
        "(d.memory_id = ?2 AND d.target_id = ?1 AND d.reverse)) ORDER BY d.strength DESC, m.id",
        (*ends, str(relation)),
    )
    return [(memory, key, name, bool(reverse)) for memory, key, name, reverse in found]


def _forget_declaration(txn: Transaction, memory: int, name: str, relation: Relation, reverse: bool) -> None:
    txn.connection.execute(
        "DELETE FROM declared_links WHERE memory_id = ? AND target = ? AND relation = ? AND reverse = ?",
        (memory, name, str(relation), reverse),
    )


def _key(connection: apsw.Connection, memory: int) -> str:
    return str(value(connection, "SELECT key FROM memories WHERE id = ?", (memory,)))
