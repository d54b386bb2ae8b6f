"""Differences between a restored checkpoint and the files (feature M14).

The restored state holds until a file changes: while a file still has the content hash recorded here, an index run
leaves its memory unchanged, and makes no memory for a file whose memory was removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts

NO_FILE = ""
"""The content hash of a missing file."""


def note(txn: Transaction, hashes: Mapping[int, str]) -> None:
    """Records, by memory id, the content hashes of files that differ from their memories; `NO_FILE` for missing
    files."""
    txn.connection.executemany("INSERT OR REPLACE INTO restorations VALUES (?, ?)", hashes.items())


def note_removed(txn: Transaction, hashes: Mapping[str, str]) -> None:
    """Records, by key, the content hashes of files whose memories were removed."""
    txn.connection.executemany("INSERT OR REPLACE INTO removed_files VALUES (?, ?)", hashes.items())


def removed_hashes(connection: Connection) -> dict[str, str]:
    """The content hashes of files whose memories were removed, by key."""
    return dict(rows(connection, "SELECT key, file_hash FROM removed_files ORDER BY key"))


def settle(txn: Transaction, memories: Iterable[int]) -> None:
    """Deletes the records of memories, which follow their files again."""
    chosen = integers(list(memories))
    txn.connection.execute("DELETE FROM restorations WHERE memory_id IN (SELECT value FROM carray(?))", (chosen,))


def settle_removed(txn: Transaction, keys: Iterable[str]) -> None:
    """Deletes the records of removed memories with these keys, since there are new ones."""
    txn.connection.execute("DELETE FROM removed_files WHERE key IN (SELECT value FROM carray(?))", (texts(keys),))
