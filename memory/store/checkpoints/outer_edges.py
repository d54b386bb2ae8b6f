"""Edges that lead out of a folder, which its checkpoint stores by the keys of both ends (feature M14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, table_exists

_TABLE = """
CREATE TABLE IF NOT EXISTS outer_edges (
    source TEXT NOT NULL, target TEXT NOT NULL, relation TEXT NOT NULL, strength REAL NOT NULL,
    evidence TEXT NOT NULL, created_by TEXT NOT NULL, created_at REAL NOT NULL,
    said REAL
) STRICT
"""
_BACK = """
INSERT OR IGNORE INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at, said)
SELECT s.id, t.id, ?3, ?4, ?5, ?6, ?7, ?8 FROM memories s, memories t WHERE s.key = ?1 AND t.key = ?2
RETURNING source_id, target_id
"""


def keep(source: apsw.Connection, txn: Transaction, memories: Sequence[int]) -> int:
    """Stores in a checkpoint of `memories` the edges between these and others; returns their number."""
    txn.connection.execute(_TABLE)
    found = _leading_out(source, memories)
    txn.connection.executemany("INSERT INTO outer_edges VALUES (?, ?, ?, ?, ?, ?, ?, ?)", found)
    return len(found)


def _leading_out(source: apsw.Connection, memories: Sequence[int]) -> list[tuple[Any, ...]]:
    # <> is an exclusive or: exactly one end is among the memories
    return rows(
        source,
        "SELECT s.key, t.key, e.relation, e.strength, e.evidence, e.created_by, e.created_at, e.said "
        "FROM causal_edges e JOIN memories s ON s.id = e.source_id JOIN memories t ON t.id = e.target_id "
        "WHERE (s.id IN (SELECT value FROM carray(?1))) <> (t.id IN (SELECT value FROM carray(?1)))",
        (integers(memories),),
    )


def bring_back(source: apsw.Connection, txn: Transaction) -> set[int]:
    """Restores the missing edges whose ends both exist; returns the memories at their ends."""
    if not table_exists(source, "outer_edges"):
        return set()
    return _made_again(txn, rows(source, "SELECT * FROM outer_edges"))


def copy(source: apsw.Connection, txn: Transaction, memories: Sequence[int]) -> set[int]:
    """Copies the missing edges that a file has between `memories` and others; returns the memories at their ends."""
    return _made_again(txn, _leading_out(source, memories))


def _made_again(txn: Transaction, edges: Iterable[tuple[Any, ...]]) -> set[int]:
    ends: set[int] = set()
    for edge in edges:
        for pair in rows(txn.connection, _BACK, edge):
            ends.update(pair)
    return ends
