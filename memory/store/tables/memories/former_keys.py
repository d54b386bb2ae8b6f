"""Keys of memories before their files were moved, so that links to the old paths still resolve (feature I8)."""

from __future__ import annotations

from collections.abc import Iterable

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows


def note(txn: Transaction, keys: Iterable[tuple[str, int]], now: float) -> None:
    """Records that these memories had these keys until `now` (epoch seconds); the last memory with a key counts."""
    txn.connection.executemany(
        "INSERT OR REPLACE INTO former_keys (key, memory_id, until) VALUES (?, ?, ?)",
        [(key, memory, now) for key, memory in keys],
    )


def former_keys(connection: Connection) -> dict[str, int]:
    """Memory ids by former key, without keys that a memory has now."""
    return dict(
        rows(
            connection,
            "SELECT key, memory_id FROM former_keys WHERE NOT EXISTS "
            "(SELECT 1 FROM memories WHERE memories.key = former_keys.key) ORDER BY key",
        )
    )
