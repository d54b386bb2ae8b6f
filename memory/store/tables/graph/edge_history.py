"""The history of edges: every change of strength, and edges added or removed other than by documents, each with its
author, time and reason (feature M7).

Only the last `MOST_KEPT` changes are kept; those of deleted memories are deleted too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Edge, Relation

MOST_KEPT = 10_000
"""Number of latest changes that are kept."""
# AUTOINCREMENT: ids only grow, so the lowest are the oldest
_FORGET = "DELETE FROM edge_history WHERE id <= (SELECT max(id) FROM edge_history) - ?"


class EdgeState(NamedTuple):
    """An edge's state at one time; `said` is the strength given by its creator, where use has changed it."""

    strength: float
    evidence: str
    created_by: str
    said: float | None

    @classmethod
    def of(cls, edge: Edge) -> EdgeState:
        """The present state of an edge."""
        return cls(edge.strength, edge.evidence, edge.created_by, edge.said)


class EdgeChange(NamedTuple):
    """One change of the edge "source RELATION target", at `changed_at` in epoch seconds; a state of None is no edge.

    `undoes` and `undone_by` are ids of other changes; a change that is not recorded yet has the id 0.
    """

    id: int
    source_id: int
    target_id: int
    relation: Relation
    changed_at: float
    changed_by: str
    why: str
    before: EdgeState | None
    after: EdgeState | None
    undoes: int | None = None
    undone_by: int | None = None


def record(txn: Transaction, made: Sequence[EdgeChange]) -> None:
    """Records changes of edges, which get their ids. Before the commit, the oldest changes beyond `MOST_KEPT` are
    deleted."""
    txn.connection.executemany(
        "INSERT INTO edge_history (source_id, target_id, relation, changed_at, changed_by, why, undoes, before, after) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*_OWN(one), _text(one.before), _text(one.after)) for one in made],
    )
    for one in made:
        if one.undoes is not None:
            latest = "SELECT max(id) FROM edge_history WHERE undoes = ?1"
            txn.connection.execute(f"UPDATE edge_history SET undone_by = ({latest}) WHERE id = ?1", (one.undoes,))
    txn.before_commit[_FORGET] = (MOST_KEPT,)


_OWN = attrgetter("source_id", "target_id", "relation.value", "changed_at", "changed_by", "why", "undoes")
_COLUMNS = "id, source_id, target_id, relation, changed_at, changed_by, why, before, after, undoes, undone_by"


def changes(
    connection: Connection,
    *,
    memory: int | None = None,
    by: str = "",
    undoable: bool = False,
    limit: int = -1,
) -> list[EdgeChange]:
    """The recorded changes, latest first.

    Args:
        connection: A connection to the store.
        memory: Only changes of edges of this memory; None for all.
        by: Only changes by this author; "" for all.
        undoable: Only changes that were not undone and undo no other change.
        limit: Maximum number of changes; negative for no limit.
    """
    # One statement for all filters. It reads backwards from the last id, over at most `MOST_KEPT` rows.
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM edge_history WHERE (source_id = ?1 OR target_id = ?1 OR ?1 IS NULL) "
        "AND (?2 = '' OR changed_by = ?2) AND (?3 = 0 OR (undone_by IS NULL AND undoes IS NULL)) "
        "ORDER BY id DESC LIMIT ?4",
        (memory, by, undoable, limit),
    )
    return [_change(row) for row in found]


def change(connection: Connection, number: int) -> EdgeChange | None:
    """The change with this id; None if there is none."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM edge_history WHERE id = ?", (number,))
    return _change(found[0]) if found else None


def _text(state: EdgeState | None) -> str | None:
    return None if state is None else json.dumps(state, ensure_ascii=False)


def _change(
    row: tuple[int, int, int, str, float, str, str, str | None, str | None, int | None, int | None],
) -> EdgeChange:
    number, source, target, relation, at, by, why, before, after, undoes, undone_by = row
    return EdgeChange(
        number, source, target, Relation(relation), at, by, why, _state(before), _state(after), undoes, undone_by
    )


def _state(text: str | None) -> EdgeState | None:
    return None if text is None else EdgeState(*json.loads(text))
