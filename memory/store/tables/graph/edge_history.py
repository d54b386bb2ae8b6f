"""What became of edges: every change of a strength, and what was made or removed by other hands than a document's, with
who did it, when and why (feature M7).

Only the last `MOST_KEPT` changes are kept, and none of a memory that is deleted.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.records import Edge, Relation

MOST_KEPT = 10_000
"""Changes that are kept."""


class State(NamedTuple):
    """What an edge was at one time; `said` is the strength that its maker gave, where use has made it another."""

    strength: float
    evidence: str
    created_by: str
    said: float | None

    @classmethod
    def of(cls, edge: Edge) -> State:
        """That of an edge as it is."""
        return cls(edge.strength, edge.evidence, edge.created_by, edge.said)


class Change(NamedTuple):
    """One change of the edge "source RELATION target", at epoch seconds; a state of None is no edge.

    `undoes` and `undone_by` are the ids of other changes.
    """

    id: int
    source_id: int
    target_id: int
    relation: Relation
    changed_at: float
    changed_by: str
    why: str
    before: State | None
    after: State | None
    undoes: int | None
    undone_by: int | None


def record(
    txn: Transaction,
    ends: tuple[int, int, str],
    before: State | None,
    after: State | None,
    *,
    by: str,
    why: str,
    now: float,
    undoes: int | None = None,
) -> int:
    """Writes that `by` made another state of an edge at `now`, and forgets the oldest; returns the id."""
    number: int = value(
        txn.connection,
        "INSERT INTO edge_history (source_id, target_id, relation, changed_at, changed_by, why, before, after, undoes) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (*ends[:2], str(ends[2]), now, by, why, _text(before), _text(after), undoes),
    )
    if undoes is not None:
        txn.connection.execute("UPDATE edge_history SET undone_by = ? WHERE id = ?", (number, undoes))
    txn.connection.execute("DELETE FROM edge_history WHERE id <= ?", (number - MOST_KEPT,))
    return number


_COLUMNS = "id, source_id, target_id, relation, changed_at, changed_by, why, before, after, undoes, undone_by"


def changes(
    connection: apsw.Connection,
    *,
    memory: int | None = None,
    by: str = "",
    undoable: bool = False,
    limit: int = -1,
) -> list[Change]:
    """The changes there are, last first: of the edges of a `memory`, or those made `by` somebody, where one is given;
    with `undoable` only those that were not undone and undo nothing themselves. A negative `limit` is none."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM edge_history WHERE (?1 IS NULL OR source_id = ?1 OR target_id = ?1) "
        "AND (?2 = '' OR changed_by = ?2) AND (NOT ?3 OR (undone_by IS NULL AND undoes IS NULL)) "
        "ORDER BY id DESC LIMIT ?4",
        (memory, by, undoable, limit),
    )
    return [_change(row) for row in found]


def change(connection: apsw.Connection, number: int) -> Change | None:
    """The change with this id."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM edge_history WHERE id = ?", (number,))
    return _change(found[0]) if found else None


def _text(state: State | None) -> str | None:
    return None if state is None else json.dumps(state, ensure_ascii=False)


def _change(row: tuple[int, int, int, str, float, str, str, str | None, str | None, int | None, int | None]) -> Change:
    number, source, target, relation, at, by, why, before, after, undoes, undone_by = row
    return Change(
        number, source, target, Relation(relation), at, by, why, _state(before), _state(after), undoes, undone_by
    )


def _state(text: str | None) -> State | None:
    return None if text is None else State(*json.loads(text))
