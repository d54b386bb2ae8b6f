"""What only tests do to a store: edges looked at and taken away, attention set, one text saved as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from speckit_memory.memory.indexing.indexer import Indexer
from speckit_memory.memory.intake.index_report import SaveResult
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.records import Edge, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import link_targets


def list_edges(connection: apsw.Connection, memory_id: int | None = None) -> list[Edge]:
    """The edges of a memory, incoming and outgoing, or all edges, by id."""
    found = connection.execute(
        "SELECT id, source_id, target_id, relation, strength, evidence, created_by FROM causal_edges "
        "WHERE ?1 IN (source_id, target_id) OR ?1 IS NULL ORDER BY id",
        (memory_id,),
    )
    return [
        Edge(id_, source, target, Relation(relation), strength, evidence, by)
        for id_, source, target, relation, strength, evidence, by in found
    ]


def delete_edge(txn: Transaction, edge: Edge) -> None:
    """Takes an edge away as a writer has to: with the places that fall vacant and the change noted."""
    with txn.part():
        txn.connection.execute("DELETE FROM causal_edges WHERE id = ?", (edge.id,))
        link_targets.note_memories(txn, (edge.source_id, edge.target_id))
        changes.record(txn, (edge.source_id, edge.target_id), "edges")


def focus(txn: Transaction, session: str, memory_id: int, attention: float, now: float) -> None:
    """Puts a memory into the working memory of a session with this attention."""
    txn.connection.execute(
        "INSERT OR REPLACE INTO working_memory (session, memory_id, attention, added_at, last_focused) "
        "VALUES (?1, ?2, ?3, ?4, ?4)",
        (session, memory_id, attention, now),
    )


def save_text(indexer: Indexer, root: Path, key: str, text: str, **options: Any) -> SaveResult:
    """Writes a file below the root and saves it."""
    (root / key).write_text(text, encoding="utf-8")
    return indexer.save_file(root / key, **options)
