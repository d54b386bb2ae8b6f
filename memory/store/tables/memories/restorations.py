"""What a restored checkpoint holds otherwise than the files say (feature M14).

The store holds until a file changes: while an index run finds the content noted here, it leaves the memory as it is,
and makes none of a file whose memory was removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts

NO_FILE = ""
"""What stands for the content of a file that is not there."""


def note(txn: Transaction, hashes: Mapping[int, str]) -> None:
    """Notes the contents of the files that these memories differ from, by memory id; `NO_FILE` where there is none."""
    txn.connection.executemany("INSERT OR REPLACE INTO restorations VALUES (?, ?)", hashes.items())


def note_removed(txn: Transaction, hashes: Mapping[str, str]) -> None:
    """Notes the contents of files whose memories were removed, by key."""
    txn.connection.executemany("INSERT OR REPLACE INTO removed_files VALUES (?, ?)", hashes.items())


def removed(connection: apsw.Connection) -> dict[str, str]:
    """The contents of files whose memories were removed, by key."""
    return dict(rows(connection, "SELECT key, file_hash FROM removed_files ORDER BY key"))


def settle(txn: Transaction, memories: Iterable[int]) -> None:
    """Has memories follow their files again."""
    chosen = integers(list(memories))
    txn.connection.execute("DELETE FROM restorations WHERE memory_id IN (SELECT value FROM carray(?))", (chosen,))


def settle_removed(txn: Transaction, keys: Iterable[str]) -> None:
    """Forgets that the memories with these keys were removed: there are others now."""
    txn.connection.execute("DELETE FROM removed_files WHERE key IN (SELECT value FROM carray(?))", (texts(keys),))
