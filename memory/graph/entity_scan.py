"""Looks for names in memories, in the background, where edges are few (feature M10, R10)."""

from __future__ import annotations

import apsw

from speckit_memory.memory.graph.entities import Entity, entities
from speckit_memory.memory.graph.entity_links import room
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.tables.graph import entities as table

SCANNED = 50
"""Memories of one batch."""

Found = list[tuple[int, str, tuple[Entity, ...]]]


def waiting(connection: apsw.Connection, _now: float) -> int:
    """How many memories have not been looked at as they are now; 0 where the graph is dense without their names."""
    return table.outdated(connection) if room(connection) else 0


def found(connection: apsw.Connection, _now: float) -> Found:
    """The names of the next memories, with the hash of the text that has them."""
    if not room(connection):
        return []
    return [
        (one.memory, one.content_hash, entities(f"{one.title}\n\n{one.body}"))
        for one in table.unread(connection, SCANNED)
    ]


def keep(txn: Transaction, _now: float, scanned: Found) -> int:
    """Keeps them; returns of how many memories."""
    for memory, content_hash, named in scanned:
        table.store(txn, memory, content_hash, named)
    return len(scanned)
