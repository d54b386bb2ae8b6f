"""The identity of a store, independent of its path: a copy of the file is the same store (feature M14)."""

from __future__ import annotations

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import value


def store_id(connection: apsw.Connection) -> str:
    """32 hexadecimal digits, unique to the store; "" if they were removed by hand."""
    return str(value(connection, "SELECT store_id FROM store_identity") or "")


def become(txn: Transaction, store_id: str) -> None:
    """Gives an empty store the identity of the store whose state it takes over."""
    txn.connection.execute("INSERT OR REPLACE INTO store_identity VALUES (1, ?)", (store_id,))
