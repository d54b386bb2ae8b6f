"""How central memories are in the causal graph, and which community each belongs to (feature M10).

Computed in the background from a state of the edges, which `graph_state` counts by triggers: a rank is stale when that
counter is not the one it was computed at, whoever changed an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables import changes
from speckit_memory.pipeline.ports import Column, Ids


class GraphState(NamedTuple):
    """The number of the state of the edges, the one that ranks were computed at (0 for none), and the greatest rank."""

    version: int
    ranked: int
    greatest: float


class Ranked(NamedTuple):
    """The rank of a memory in multiples of the mean, > 0, and its community, named by its smallest memory."""

    memory: int
    rank: float
    community: int


def state(connection: apsw.Connection) -> GraphState:
    """How far ranks are behind the edges."""
    [found] = rows(connection, "SELECT version, ranked, greatest FROM graph_state")
    return GraphState(*found)


def count(connection: apsw.Connection) -> int:
    """How many memories have a rank."""
    [(number,)] = rows(connection, "SELECT count(*) FROM graph_ranks")
    return int(number)


def communities(connection: apsw.Connection) -> int:
    """How many communities ranked memories form."""
    [(number,)] = rows(connection, "SELECT count(DISTINCT community) FROM graph_ranks")
    return int(number)


def replace(txn: Transaction, ranked: Sequence[Ranked], version: int) -> int:
    """Makes these all the ranks there are, as computed from the edges at `version`; what was deleted since gets none.

    Returns how many memories got or lost a rank, or have another one now.
    """
    connection = txn.connection
    before = {row[0]: row for row in rows(connection, "SELECT memory_id, rank, community FROM graph_ranks")}
    after = {row.memory: row for row in ranked}
    gone = before.keys() - after.keys()
    changed = [row for row in ranked if before.get(row.memory) != row]
    connection.execute(
        "DELETE FROM graph_ranks WHERE memory_id IN (SELECT value FROM carray(?))", (integers(sorted(gone)),)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO graph_ranks SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM memories WHERE id = ?1)",
        changed,
    )
    greatest = max((row.rank for row in ranked), default=0.0)
    connection.execute("UPDATE graph_state SET ranked = ?, greatest = ?", (version, greatest))
    touched = sorted(gone | {row.memory for row in changed})
    changes.record(txn, touched[:1], "edges")  # one entry tells who keeps what edges say that it is old
    return len(touched)


def ranks(connection: apsw.Connection, memories: Ids) -> tuple[Column, float]:
    """The rank of each memory, 0 for one that has none, and the greatest of the store, 0 when nothing is ranked."""
    found = dict(
        rows(
            connection,
            "SELECT memory_id, rank FROM graph_ranks WHERE memory_id IN (SELECT value FROM carray(?))",
            (integers(memories),),
        )
    )
    values = [found.get(memory, 0.0) for memory in memories.tolist()]
    return np.array(values, np.float64), state(connection).greatest


def members(connection: apsw.Connection, memory: int, limit: int) -> list[int]:
    """The `limit` highest ranked other members of a memory's community, by their keys where ranks are equal; none for
    a memory without a rank.
    """
    found = rows(
        connection,
        "SELECT r.memory_id FROM graph_ranks r JOIN memories m ON m.id = r.memory_id "
        "WHERE r.community = (SELECT community FROM graph_ranks WHERE memory_id = ?1) AND r.memory_id <> ?1 "
        "ORDER BY r.rank DESC, m.key LIMIT ?2",
        (memory, limit),
    )
    return [member for (member,) in found]
