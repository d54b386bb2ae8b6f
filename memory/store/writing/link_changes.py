"""Taking single links away, and taking changes of links back (feature M7)."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.queries import value
from speckit_memory.memory.store.records import Edge
from speckit_memory.memory.store.tables import edge_history, edges
from speckit_memory.memory.store.tables.edge_history import Change, State
from speckit_memory.memory.store.tables.link_targets import note_memories
from speckit_memory.memory.store.writing.links import resolve_links


class Unlinked(NamedTuple):
    """A link that was taken away, and the one that stands in its place because a document declares it."""

    edge: Edge
    declared: Edge | None


class Undone(NamedTuple):
    """The changes that were taken back, last first, and those that could not be, with the reason."""

    changes: tuple[Change, ...]
    refused: tuple[tuple[Change, str], ...] = ()


def unlink(txn: Transaction, edge_id: int, *, by: str, why: str, now: float) -> Unlinked:
    """Removes the edge with this id. Raises E080 when there is none, E083 for one that a document declares."""
    edge = edges.edge_with(txn.connection, edge_id)
    if edge is None:
        raise SpeckitError(
            "E080",
            f"there is no link with the id {edge_id}",
            hint="Lineages show the ids of links.",
            actions=("look with `memory_drift_why`", "look with `speckit-memory lineage`"),
        )
    if edge.created_by == "document":
        raise SpeckitError(
            "E083",
            f"link {edge_id} is declared: {edge.evidence}",
            actions=(f"take it out of the causalLinks of {_declarer(txn.connection, edge)}, and index that",),
        )
    edges.remove_edge(txn, edge, by=by, why=why, now=now)
    return Unlinked(edge, _resolved(txn, edge, now))


def undo(txn: Transaction, number: int, *, by: str, now: float) -> Change:
    """Makes an edge what it was before a change. Raises E080 for an unknown change, E083 when it is not as the change
    left it, and E032 when a memory has no room for what was removed."""
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
    if change.before is not None:
        edges.put_state(txn, triple, change.before, by=by, why=why, now=now, undoes=number)
    elif current is not None:
        edges.remove_edge(txn, current, by=by, why=why, now=now, undoes=number)
        _resolved(txn, current, now)
    return change


def undo_all(txn: Transaction, maker: str, *, since: float, by: str, now: float) -> Undone:
    """Takes back what `maker` changed from `since` (epoch seconds) on, last first; what cannot be is left and told."""
    done, refused = [], []
    for change in edge_history.changes(txn.connection, by=maker, undoable=True):
        if change.changed_at < since:
            continue
        try:
            with txn.part():
                done.append(undo(txn, change.id, by=by, now=now))
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


def _declarer(connection: apsw.Connection, edge: Edge) -> str:
    key: str | None = value(
        connection,
        "SELECT m.key FROM declared_links d JOIN memories m ON m.id = d.memory_id WHERE d.relation = ?3 AND "
        "((d.memory_id = ?1 AND d.target_id = ?2 AND NOT d.reverse) OR "
        "(d.memory_id = ?2 AND d.target_id = ?1 AND d.reverse)) ORDER BY d.strength DESC LIMIT 1",
        (edge.source_id, edge.target_id, str(edge.relation)),
    )
    return key or "its document"
