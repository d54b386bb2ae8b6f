"""Centrality ranks of memories in the causal graph, and their communities (feature M10).

They are computed in the background from one version of the graph. SQL triggers count versions in `graph_state` with
every change of an edge; ranks are stale when they were computed at an earlier version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables import changes
from speckit_memory.pipeline.ports import Column, Ids


class GraphState(NamedTuple):
    """The version of the graph, the version at which ranks were computed (0 for none), and the greatest rank."""

    version: int
    ranked: int
    greatest: float


class MemoryRank(NamedTuple):
    """A memory's rank as a multiple of the mean, > 0, and its community, identified by its smallest memory id."""

    memory: int
    rank: float
    community: int


def state(connection: Connection) -> GraphState:
    """The version of the graph and that of the ranks."""
    [found] = rows(connection, "SELECT version, ranked, greatest FROM graph_state")
    return GraphState(*found)


def count(connection: Connection) -> int:
    """Number of memories with a rank."""
    [(number,)] = rows(connection, "SELECT count(*) FROM graph_ranks")
    return int(number)


def communities(connection: Connection) -> int:
    """Number of communities of ranked memories."""
    [(number,)] = rows(connection, "SELECT count(DISTINCT community) FROM graph_ranks")
    return int(number)


def replace(txn: Transaction, ranked: Sequence[MemoryRank], version: int) -> int:
    """Replaces all ranks by these, computed at `version` of the graph; memories deleted since then get none.

    Returns the number of memories whose rank was added, removed or changed.
    """
    connection = txn.connection
    before = {row[0]: row for row in rows(connection, "SELECT memory_id, rank, community FROM graph_ranks")}
    after = {row.memory: row for row in ranked}
    gone = before.keys() - after.keys()
    # a MemoryRank equals the plain tuple of its row
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
    changes.record(txn, touched[:1], "edges")  # one entry is enough to invalidate what is cached about edges
    return len(touched)


def ranks(connection: Connection, memories: Ids) -> tuple[Column, float]:
    """The rank of each memory (0 for none), shape (n,) float64, and the greatest rank in the store (0 without any)."""
    found = dict(
        rows(
            connection,
            "SELECT memory_id, rank FROM graph_ranks WHERE memory_id IN (SELECT value FROM carray(?))",
            (integers(memories),),
        )
    )
    values = [found.get(memory, 0.0) for memory in memories.tolist()]
    return np.array(values, np.float64), state(connection).greatest


def members(connection: Connection, memory: int, limit: int) -> list[int]:
    """The `limit` highest ranked other members of a memory's community, ties by key; none for a memory without rank."""
    # graph_ranks_by_community has the members in order of rank: only ties are sorted by key
    found = rows(
        connection,
        "SELECT r.memory_id FROM graph_ranks r JOIN memories m ON m.id = r.memory_id "
        "WHERE r.community = (SELECT community FROM graph_ranks WHERE memory_id = ?1) AND r.memory_id <> ?1 "
        "ORDER BY r.rank DESC, m.key LIMIT ?2",
        (memory, limit),
    )
    return [member for (member,) in found]
