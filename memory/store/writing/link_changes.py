"""Adding and removing single links, and undoing changes of links (feature M7).

If the document of a memory can be edited, it declares the link, and the edge has `created_by` "document", so that the
files contain all links. Only if it cannot is the edge a manual one that exists in this store alone.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.records import Edge, Link, Relation
from speckit_memory.memory.store.tables.graph import edge_history, edges
from speckit_memory.memory.store.tables.graph.edge_history import EdgeChange, EdgeState
from speckit_memory.memory.store.tables.graph.link_targets import note_memories
from speckit_memory.memory.store.writing.links import resolve_links


class Documents(Protocol):
    """Editor of the links that documents declare."""

    def declare(self, source: str, target: str, relation: Relation, strength: float, evidence: str) -> tuple[Link, str]:
        """Declares an edge in the document of one end.

        Args:
            source: Key of the source memory.
            target: Key of the target memory.
            relation: The relation.
            strength: In [0, 1].
            evidence: The reason for the edge, for readers.

        Returns:
            The link, and why the document cannot declare it ("" if it does).
        """

    def withdraw(self, key: str, relation: Relation, reverse: bool, targets: Collection[str]) -> str:
        """Removes declared links from a document.

        Args:
            key: Key of the declaring memory.
            relation: The relation.
            reverse: Whether the declaring memory is the target of the edge.
            targets: Targets as written in the document.

        Returns:
            Why the document cannot be edited; "" if it was.
        """

    def part(self) -> AbstractContextManager[None]:
        """A group of edits that are all undone when its block raises."""


class AddedLink(NamedTuple):
    """A link that was added, and why no document declares it ("" if one does)."""

    edge: Edge
    reason: str


class RemovedLink(NamedTuple):
    """A link that was removed, and the edge that replaced it because a document declares it."""

    edge: Edge
    declared: Edge | None


class Undone(NamedTuple):
    """The undone changes, latest first, and those that could not be undone, with the reason."""

    changes: tuple[EdgeChange, ...]
    refused: tuple[tuple[EdgeChange, str], ...] = ()


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
) -> AddedLink:
    """Adds the edge "source RELATION target" or changes the existing one, in its document if possible.

    Args:
        txn: The transaction.
        ends: Source id and target id.
        relation: The relation.
        strength: In [0, 1]; None for the given strength of an existing deliberate edge, otherwise 1.
        evidence: The reason for the edge, for readers; "" for the existing one.
        documents: The editor of documents.
        by: The author of the change.
        now: The time, in epoch seconds.

    Returns:
        The edge, and why no document declares it.

    Raises:
        SpeckitError: As `edges.add_edge`.
    """
    known = edges.edge_between(txn.connection, *ends, str(relation))
    # own: the strength given by the creator, without what use has added
    if known is not None:
        evidence, own = evidence or known.evidence, known.strength if known.said is None else known.said
        if strength is None and known.created_by in edges.DELIBERATE and not edges.gives_way(known):
            strength = own
        if known.created_by == "document" and (own, known.evidence) == (strength, evidence):
            return AddedLink(known, "")
    state = EdgeState(1.0 if strength is None else strength, evidence, by, None)
    edges.require_possible(txn, *ends, state, new=known is None)
    return _declare(txn, ends, relation, state, documents, by=by, now=now)


def unlink(txn: Transaction, edge_id: int, documents: Documents, *, by: str, why: str, now: float) -> RemovedLink:
    """Removes an edge, also from the front matter that declares it.

    Args:
        txn: The transaction.
        edge_id: Id of the edge.
        documents: The editor of documents.
        by: The author of the change.
        why: The reason, for readers.
        now: The time, in epoch seconds.

    Returns:
        The removed edge, and the edge that replaced it.

    Raises:
        SpeckitError: E080 for an unknown edge, E083 for one declared by a document that cannot be edited.
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
    return RemovedLink(edge, _resolved(txn, edge, now))


def undo(txn: Transaction, number: int, documents: Documents, *, by: str, now: float) -> EdgeChange:
    """Undoes a change of an edge, in its document too.

    Args:
        txn: The transaction.
        number: Id of the change.
        documents: The editor of documents.
        by: The author of the undoing.
        now: The time, in epoch seconds.

    Returns:
        The undone change.

    Raises:
        SpeckitError: E080 for an unknown change, E083 if the edge has changed since, E032 if a memory has no room for
            the removed edge.
    """
    change = edge_history.change(txn.connection, number)
    if change is None:
        raise SpeckitError(
            "E080",
            f"there is no change {number}",
            hint="The history of links lists all changes.",
            actions=("look with `speckit-memory links history`",),
        )
    triple = (change.source_id, change.target_id, str(change.relation))
    current = edges.edge_between(txn.connection, *triple)
    _require_undoable(txn.connection, change, None if current is None else EdgeState.of(current))
    why = f"undoes change {number}"
    if current is not None and (change.before is None or change.before.created_by != "document"):
        _withdraw(txn, current, documents)
    # Before the change the edge was declared, or an edge of this store alone, or there was none.
    if change.before is not None and change.before.created_by == "document":
        own = change.before.strength if change.before.said is None else change.before.said
        state = EdgeState(own, change.before.evidence, by, None)
        _declare(txn, triple[:2], change.relation, state, documents, by=by, now=now, undoes=number, why=why)
    elif change.before is not None:
        edges.put_state(txn, triple, change.before, by=by, why=why, now=now, undoes=number)
    elif current is not None:
        edges.remove_edge(txn, current, by=by, why=why, now=now, undoes=number)
        _resolved(txn, current, now)
    return change


def undo_all(txn: Transaction, maker: str, documents: Documents, *, since: float, by: str, now: float) -> Undone:
    """Undoes all changes by one author, latest first; changes that cannot be undone are skipped.

    Args:
        txn: The transaction.
        maker: The author of the changes.
        documents: The editor of documents.
        since: Only changes from this time on, in epoch seconds.
        by: The author of the undoing.
        now: The time, in epoch seconds.

    Returns:
        The undone changes and the skipped ones.
    """
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


def _require_undoable(connection: Connection, change: EdgeChange, current: EdgeState | None) -> None:
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
    """Resolves links into the room left by a removed edge, and returns the edge that replaced it, if any."""
    note_memories(txn, (edge.source_id, edge.target_id))
    resolve_links(txn, now)
    return edges.edge_between(txn.connection, edge.source_id, edge.target_id, str(edge.relation))


def _declare(
    txn: Transaction,
    ends: tuple[int, int],
    relation: Relation,
    state: EdgeState,
    documents: Documents,
    *,
    by: str,
    now: float,
    undoes: int | None = None,
    why: str = "",
) -> AddedLink:
    """Stores a state of an edge, declared by its document if possible; other declarations of it are removed then."""
    source, target = (_key(txn.connection, end) for end in ends)
    link, reason = documents.declare(source, target, relation, state.strength, state.evidence)
    if not reason:
        declarer, other = ends[::-1] if link.reverse else ends
        for memory, key, name, reverse in _declarations(txn.connection, ends, relation):
            if (memory, name, reverse) == (declarer, link.target, link.reverse) or not documents.withdraw(
                key, relation, reverse, {name}
            ):
                _forget_declaration(txn, memory, name, relation, reverse)
        # (memory_id, ordinal) is the primary key: the new declaration comes last
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
    return AddedLink(
        edges.put_state(txn, triple, state, by=by, why=why or state.evidence, now=now, undoes=undoes), reason
    )


def _withdraw(txn: Transaction, edge: Edge, documents: Documents) -> None:
    """Removes an edge from the front matter that declares it. Raises E083 if no declaration can be removed."""
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
            actions=(f"remove it from {kept[0][0]}, then index that file",),
        )


def _declarations(
    connection: Connection, ends: tuple[int, int], relation: Relation
) -> list[tuple[int, str, str, bool]]:
    """The declarations of an edge: memory id, its key, the target as written, and whether that is the edge's source."""
    found = rows(
        connection,
        "SELECT m.id, m.key, d.target, d.reverse FROM declared_links d JOIN memories m ON m.id = d.memory_id "
        "WHERE d.relation = ?3 AND ((d.memory_id = ?1 AND d.target_id = ?2 AND d.reverse = 0) OR "
        "(d.memory_id = ?2 AND d.target_id = ?1 AND d.reverse = 1)) "
        "GROUP BY m.id, m.key, d.target, d.reverse ORDER BY max(d.strength) DESC, m.id",
        (*ends, str(relation)),
    )
    return [(memory, key, name, bool(reverse)) for memory, key, name, reverse in found]


def _forget_declaration(txn: Transaction, memory: int, name: str, relation: Relation, reverse: bool) -> None:
    txn.connection.execute(
        "DELETE FROM declared_links WHERE memory_id = ? AND target = ? AND relation = ? AND reverse = ?",
        (memory, name, str(relation), reverse),
    )


def _key(connection: Connection, memory: int) -> str:
    return str(value(connection, "SELECT key FROM memories WHERE id = ?", (memory,)))
