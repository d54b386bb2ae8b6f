"""Memories that hold what a checkpoint had while their files say something else (feature M14).

The store holds until the file changes: an index run that finds the content noted here leaves the memory as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.memory.store.file.connection import Transaction

NO_FILE = ""
"""What stands for the content of a file that is not there."""


def note(txn: Transaction, hashes: Mapping[int, str]) -> None:
    """Notes the contents of the files that these memories differ from, by memory id; `NO_FILE` where there is none."""
    txn.connection.executemany("INSERT OR REPLACE INTO restorations VALUES (?, ?)", hashes.items())


def settle(txn: Transaction, memory: int) -> None:
    """Has a memory follow its file again."""
    txn.connection.execute("DELETE FROM restorations WHERE memory_id = ?", (memory,))
