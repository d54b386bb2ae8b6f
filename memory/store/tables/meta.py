"""Key-value facts about the whole store, such as the embedding model or the time of the last scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts


def get_meta(connection: Connection, key: str) -> str | None:
    """The value of a fact; None if it was never set."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def get_metas(connection: Connection, keys: Sequence[str]) -> Mapping[str, str]:
    """The values of these facts, without those that were never set."""
    return dict(
        rows(connection, "SELECT key, value FROM meta WHERE key IN (SELECT value FROM carray(?))", (texts(keys),))
    )


def set_meta(txn: Transaction, key: str, value: str) -> None:
    """Sets a fact, replacing its former value."""
    txn.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
