"""Records where files disagree with a restored checkpoint: the store wins until they change (feature M14)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.scanning.scanner import FoundFile
from speckit_memory.memory.scanning.workspace_sources import may_exist
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.memories import restorations
from speckit_memory.memory.store.tables.memories.restorations import NO_FILE
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.moving import TO_BE_READ

REMOVED = "removed by a restored checkpoint"
"""The reason given for skipping a file whose memory a restore removed; it is indexed again once it changes."""


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Keys of memories that differ from their files, of memories without a file, and of files whose memories were
    removed. In all of them the store takes precedence until the file changes."""

    differing: tuple[str, ...] = ()
    without_file: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def note_disagreements(
    txn: Transaction, root: Path, elsewhere: Callable[[str], bool], restored: Collection[int], removed: Collection[str]
) -> Disagreements:
    """Compare a restored store with the files, and record where the store takes precedence.

    Args:
        txn: The transaction to write in.
        root: The root of the workspace.
        elsewhere: Tells whether a key belongs to another source.
        restored: The ids of the memories that were restored.
        removed: The keys of the memories that were removed.

    Returns:
        The disagreements; unreadable files count as unchanged.
    """
    found = rows(
        txn.connection,
        # LEFT JOIN: `absences` has a row only for a memory whose file an earlier run did not find.
        "SELECT id, key, content_hash, memory_id IS NOT NULL FROM memories LEFT JOIN absences ON memory_id = id "
        "WHERE mtime_ns IS NOT NULL AND id IN (SELECT value FROM carray(?)) ORDER BY key",
        (integers(sorted(restored)),),
    )
    # First forget earlier disagreements of these memories; those that remain are recorded again below.
    restorations.settle(txn, [memory for memory, *_ in found])
    restorations.settle_removed(txn, [key for _, key, _, _ in found])
    hashes: dict[int, str] = {}
    keys: dict[int, str] = {}
    present: list[int] = []
    for memory, key, stored, absent in found:
        there = _hash(root, key)
        # A file that was missing already is no new disagreement, nor is one that belongs to another root.
        if there == NO_FILE and (absent or elsewhere(key)):
            continue
        present.append(memory)
        if there not in (None, stored):
            hashes[memory], keys[memory] = there, key
    writer.take_up(txn, present)
    restorations.note(txn, hashes)
    # TO_BE_READ: should the file come back, it is read at any modification time.
    writer.touch_mtime(txn, {memory: TO_BE_READ for memory, there in hashes.items() if there == NO_FILE})
    files = {key: there for key in removed if (there := _hash(root, key))}
    restorations.note_removed(txn, files)
    return Disagreements(
        tuple(keys[memory] for memory, there in hashes.items() if there != NO_FILE),
        tuple(keys[memory] for memory, there in hashes.items() if there == NO_FILE),
        tuple(files),
    )


def _hash(root: Path, key: str) -> str | None:
    """Return the hash of a file's content, `NO_FILE` if it does not exist, None if it cannot be read."""
    try:
        return content_hash(FoundFile(key, root, 0).read()[0])
    except SpeckitError:
        return None if may_exist(root / key) else NO_FILE
