"""Where files disagree with what a checkpoint has brought back: the store holds until they change (feature M14)."""

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
"""Why a file is left out whose memory is gone; it is taken again once it says something else."""


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Keys of memories that say something else than their files, of those without a file, and of files whose memories
    are gone. The store holds in all of them until the file changes."""

    differing: tuple[str, ...] = ()
    without_file: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def note_disagreements(
    txn: Transaction, root: Path, elsewhere: Callable[[str], bool], restored: Collection[int], removed: Collection[str]
) -> Disagreements:
    """Compares the memories that were `restored`, by id, and the keys of those that were `removed`, with the files of a
    workspace, and notes where the store holds. What cannot be read is taken for unchanged."""
    found = rows(
        txn.connection,
        "SELECT id, key, content_hash, memory_id IS NOT NULL FROM memories LEFT JOIN absences ON memory_id = id "
        "WHERE mtime_ns IS NOT NULL AND id IN (SELECT value FROM carray(?)) ORDER BY key",
        (integers(sorted(restored)),),
    )
    restorations.settle(txn, [memory for memory, *_ in found])
    restorations.settle_removed(txn, [key for _, key, _, _ in found])
    hashes: dict[int, str] = {}
    keys: dict[int, str] = {}
    present: list[int] = []
    for memory, key, stored, absent in found:
        there = _hash(root, key)
        if there == NO_FILE and (absent or elsewhere(key)):
            continue
        present.append(memory)
        if there not in (None, stored):
            hashes[memory], keys[memory] = there, key
    writer.take_up(txn, present)
    restorations.note(txn, hashes)
    writer.touch_mtime(txn, {memory: TO_BE_READ for memory, there in hashes.items() if there == NO_FILE})
    files = {key: there for key in removed if (there := _hash(root, key))}
    restorations.note_removed(txn, files)
    return Disagreements(
        tuple(keys[memory] for memory, there in hashes.items() if there != NO_FILE),
        tuple(keys[memory] for memory, there in hashes.items() if there == NO_FILE),
        tuple(files),
    )


def _hash(root: Path, key: str) -> str | None:
    """The hash of a file's content, `NO_FILE` where there is none, None where it cannot be read."""
    try:
        return content_hash(FoundFile(key, root, 0).read()[0])
    except SpeckitError:
        return None if may_exist(root / key) else NO_FILE
