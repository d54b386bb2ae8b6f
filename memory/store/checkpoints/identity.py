"""Which store this is, wherever its file goes: a copy of it is the same store (feature M14)."""

from __future__ import annotations

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import value


def store_id(connection: apsw.Connection) -> str:
    """32 hexadecimal digits that no other store has; "" where a hand removed them."""
    return str(value(connection, "SELECT store_id FROM store_identity") or "")


def become(txn: Transaction, store_id: str) -> None:
    """An empty store that takes another one's state in goes on as that one."""
    txn.connection.execute("INSERT OR REPLACE INTO store_identity VALUES (1, ?)", (store_id,))
