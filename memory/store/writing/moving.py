"""Moves memories to other keys when their files were moved (feature I8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, texts
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import link_targets
from speckit_memory.memory.store.tables.memories import former_keys
from speckit_memory.memory.store.writing import near_duplicates

TO_BE_READ = -1
"""The mtime (ns) of a memory whose file must be read even if its text is unchanged, since the rows of a document also
depend on its key."""


class KeyChange(NamedTuple):
    """A memory with its present key, and its new key and folder."""

    memory: int
    old: str
    new: str
    folder: str


def move_memories(txn: Transaction, wanted: Sequence[KeyChange], now: float) -> list[KeyChange]:
    """Gives memories other keys and folders; returns those that were moved.

    Memories may exchange keys. A memory is skipped if it no longer has its old key, or if its new key belongs to a
    memory that does not move. The documents must be written again: until then, the words of the old paths are indexed.
    """
    connection = txn.connection
    names = texts(sorted({key for each in wanted for key in (each.old, each.new)}))
    stored = dict(rows(connection, "SELECT key, id FROM memories WHERE key IN (SELECT value FROM carray(?))", (names,)))
    moving = [each for each in wanted if stored.get(each.old) == each.memory]
    # A skipped memory keeps its key, which may block others: repeat until no more are skipped.
    while True:
        leaving = {each.old for each in moving}
        possible = [each for each in moving if each.new not in stored or each.new in leaving]
        if len(possible) == len(moving):
            break
        moving = possible
    if not moving:
        return []
    ids = [each.memory for each in moving]
    with txn.part():
        folders = rows(
            connection,
            "SELECT DISTINCT folder FROM memories WHERE key IN (SELECT value FROM carray(?))",
            (texts([each.old for each in moving]),),
        )
        # Temporary keys first: keys are unique at every moment, and no file has a key of this form.
        connection.executemany("UPDATE memories SET key = '/' || id WHERE id = ?", [(each,) for each in ids])
        connection.executemany(
            # An empty fingerprint equals no document's, so that the next run writes the rows again.
            "UPDATE memories SET key = ?, folder = ?, fingerprint = x'', mtime_ns = ? WHERE id = ?",
            [(each.new, each.folder, TO_BE_READ, each.memory) for each in moving],
        )
        taken = {each.new for each in moving}
        former_keys.note(txn, [(each.old, each.memory) for each in moving if each.old not in taken], now)
        changes.record(txn, sorted(ids), "put")
        link_targets.note_keys(txn, [key for each in moving for key in (each.old, each.new)])
        link_targets.note_memories(txn, ids)
        near_duplicates.mark_uncounted(txn, {*(folder for (folder,) in folders), *(each.folder for each in moving)})
    return moving
