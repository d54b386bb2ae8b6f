"""Scans memories for names in the background, while the graph has few edges (feature M10, R10)."""

from __future__ import annotations

from speckit_memory.memory.graph.entities import Entity, entities
from speckit_memory.memory.graph.entity_links import room
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.tables.graph import entities as table

SCANNED = 50
"""Memories per batch."""

Found = list[tuple[int, str, tuple[Entity, ...]]]


def waiting(connection: Connection, _now: float) -> int:
    """Number of memories whose present text has not been scanned; 0 if the graph is dense without names."""
    return table.count_outdated(connection) if room(connection) else 0


def scan_entities(connection: Connection, _now: float) -> Found:
    """The names in the next memories, with the hash of the scanned text."""
    if not room(connection):
        return []
    return [
        (one.memory, one.content_hash, entities(f"{one.title}\n\n{one.body}"))
        for one in table.unread(connection, SCANNED)
    ]


def keep(txn: Transaction, _now: float, scanned: Found) -> int:
    """Store the names; returns the number of memories."""
    for memory, content_hash, named in scanned:
        table.store(txn, memory, content_hash, named)
    return len(scanned)
