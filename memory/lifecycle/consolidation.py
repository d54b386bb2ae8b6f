"""Adjusts the strength of edges by use and idleness, in small recorded steps (feature M11, N3).

Nothing is merged, and no edge is created or removed. A declared or hand-made edge never falls below the strength its
author gave it: idleness only takes back what use has added.
"""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts, value
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.graph.edge_history import EdgeState

MAKER = "consolidation"
CYCLE = 7 * 86_400.0
"""Seconds between two rounds."""
GAIN = 0.05
"""Added by a round to an edge that was used since the previous round."""
LOSS = 0.1
IDLE = 30 * 86_400.0
"""An edge loses `LOSS` after this many seconds without use or change."""
LEAST = 0.05
"""The minimum to which idleness reduces an automatic edge."""
BATCH = 50
"""Edges per transaction."""
_SLACK = 3600.0
"""A round may begin this much earlier than a cycle after the previous one."""

_LAST = (
    "(SELECT max(h.changed_at) FROM edge_history h WHERE h.source_id = e.source_id AND h.target_id = e.target_id "
    "AND h.relation = e.relation AND {0})"
)
# an edge that no round has changed yet is due at once: `earliest` comes before all times
_USED = (
    "SELECT e.id, u.times FROM edge_uses u JOIN causal_edges e ON e.id = u.edge_id WHERE u.times > 0 "
    f"AND coalesce({_LAST.format('h.changed_by = :maker AND h.changed_at <= :now')}, :earliest) <= :now - :cycle"
)
# `said` is NULL for an edge at its original strength; 2 is above every strength, so such an edge is not weakened
_WEAKENING = (
    "SELECT e.id, 0 FROM causal_edges e LEFT JOIN edge_uses u ON u.edge_id = e.id "
    "WHERE e.strength > iif(e.created_by IN (SELECT value FROM carray(:deliberate)), coalesce(e.said, 2), :least) "
    f"AND max(e.created_at, coalesce(u.last_used, e.created_at), coalesce({_LAST.format('1')}, e.created_at)) "
    "<= :now - :idle AND coalesce(u.times, 0) = 0"
)


class _Concerned(NamedTuple):
    edge: int
    times: int


def waiting(connection: Connection, now: float) -> int:
    """Number of edges that a round at `now` (epoch seconds) would process."""
    return sum(value(connection, f"SELECT count(*) FROM ({sql})", _facts(now)) for sql in (_USED, _WEAKENING))


def consolidate(txn: Transaction, now: float) -> int:
    """Change up to `BATCH` edges; returns the number processed. Each round changes an edge at most once."""
    connection = txn.connection
    used = [_Concerned(*row) for row in rows(connection, f"{_USED} ORDER BY e.id LIMIT {BATCH}", _facts(now))]
    for edge, times in used:
        _move(txn, edge, GAIN, f"both ends were used together, {times} time{'s' if times > 1 else ''}", now)
    together = integers([edge for edge, _ in used])
    connection.execute("UPDATE edge_uses SET times = 0 WHERE edge_id IN (SELECT value FROM carray(?))", (together,))
    # A batch either strengthens or weakens; weakening waits until all uses are processed.
    if used:
        return len(used)
    wanted = f"{_WEAKENING} ORDER BY e.id LIMIT {BATCH}"
    idle = [_Concerned(*row) for row in rows(connection, wanted, _facts(now))]
    for edge, _ in idle:
        _move(txn, edge, -LOSS, "not used for 30 days", now)
    return len(idle)


def _move(txn: Transaction, edge_id: int, by: float, why: str, now: float) -> None:
    edge = edges.edge_with(txn.connection, edge_id)
    if edge is None:
        return
    # said: the strength given by the author or the maker, before any consolidation
    said = edge.strength if edge.said is None else edge.said
    least = said if edge.created_by in edges.DELIBERATE else min(LEAST, edge.strength)
    # rounded, so that steps up and down can meet `said` exactly
    strength = round(min(max(edge.strength + by, least), edges.strongest(edge.created_by)), 6)
    # None marks an edge at its original strength.
    state = EdgeState(strength, edge.evidence, edge.created_by, None if strength == said else said)
    triple = (edge.source_id, edge.target_id, str(edge.relation))
    edges.put_state(txn, triple, state, by=MAKER, why=why, now=now)


def _facts(now: float) -> dict[str, object]:
    """The values of both conditions; a statement takes those that it names."""
    return {
        "maker": MAKER,
        "now": now,
        "cycle": CYCLE - _SLACK,
        "earliest": -1e18,
        "idle": IDLE,
        "least": LEAST,
        "deliberate": texts(edges.DELIBERATE),
    }
