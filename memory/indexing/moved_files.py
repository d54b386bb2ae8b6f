"""Moves memories along with their renamed or moved files, as the first step after a scan (feature I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.config.workspace.private_folders import private_owner
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.keys import folder_of
from speckit_memory.memory.scanning import moves
from speckit_memory.memory.scanning.moves import FileMove
from speckit_memory.memory.scanning.scanner import Decision, FoundFile
from speckit_memory.memory.scanning.workspace_sources import may_exist
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.writing.moving import TO_BE_READ, KeyChange, move_memories

Known = Mapping[str, KnownFile]
BLANK = content_hash("")


@dataclass(frozen=True, slots=True)
class _Read:
    """Hashes of the files that were read, and the texts of those that may be edited versions of a vanished file."""

    hashes: dict[str, str]
    texts: dict[str, str]


def found_moves(
    connection: Connection, known: Known, decision: Decision, root: Path, elsewhere: Callable[[str], bool]
) -> list[FileMove]:
    """Find the memories whose files have moved.

    Files are read only if some have vanished, or if at least two known ones have new times and may have been swapped.
    Blank texts are never matched. A memory absent since an earlier run only matches an equal text.

    Args:
        connection: Reads the bodies of memories.
        known: The files in the store, by key.
        decision: What the run decided to read, skip and report as gone.
        root: The root of the workspace.
        elsewhere: Tells whether a key belongs to another source.

    Returns:
        The moves, sorted by new key.
    """
    gone = set(decision.gone)
    # A file may also have come from outside the indexed paths.
    gone |= _vanished(root, known, decision, elsewhere)
    new = {file.key for file in decision.read if file.key not in known} if gone else set[str]()
    older = {file.key for file in decision.read if file.key in known and known[file.key].mtime_ns is not None}
    if not (gone and new) and len(older) < 2:
        return []
    read = _read([file for file in decision.read if file.key in new or file.key in older], new)
    changed = {key for key in older & read.hashes.keys() if known[key].content_hash != read.hashes[key]}
    # `left` are texts that may have gone elsewhere, `found` those that have arrived: a changed file is in both.
    left = {key: known[key].content_hash for key in gone | changed}
    found = {key: read.hashes[key] for key in (new & read.hashes.keys()) | changed if read.hashes[key] != BLANK}
    # Equal texts first; only the rest is compared by similarity, which is quadratic in the number of files.
    certain = _same_owner(moves.equal(left, found, changed))
    texts = {key: text for key, text in read.texts.items() if key not in {move.new for move in certain}}
    old = sorted(key for key in gone - {move.old for move in certain} if not known[key].absent)
    if not old or not texts or max(len(old), len(texts)) > moves.MOST_COMPARED:
        return certain
    bodies = {key: reader.body(connection, known[key].id) for key in old}
    return sorted([*certain, *_same_owner(moves.similar(bodies, texts))], key=lambda move: move.new)


def _same_owner(found: Iterable[FileMove]) -> list[FileMove]:
    """The moves that do not cross the border of a private folder, where a memory begins anew: it keeps its readers."""
    return [move for move in found if private_owner(move.old) == private_owner(move.new)]


def saved_move(known: Known, key: str, digest: str, root: Path, elsewhere: Callable[[str], bool]) -> list[FileMove]:
    """Return the move that saving one file amounts to: its key is new, and a memory with equal text has lost its file.

    Args:
        known: The files in the store, by key.
        key: The key of the file.
        digest: The content hash of its text.
        root: The root of the workspace.
        elsewhere: Tells whether a key belongs to another source.
    """
    if key in known or digest == BLANK:
        return []
    old = {
        each: digest
        for each, stored in known.items()
        if stored.content_hash == digest
        and stored.mtime_ns is not None
        and not may_exist(root / each)
        and not elsewhere(each)
    }
    return _same_owner(moves.equal(old, {key: digest}, ()))


def follow(database: Database, known: Known, found: Iterable[FileMove], now: float) -> list[FileMove]:
    """Apply moves to the store.

    Args:
        database: The store.
        known: The files in the store, by key.
        found: The moves to apply.
        now: The time, in epoch seconds.

    Returns:
        The moves that were applied; concurrent changes may have made others impossible.
    """
    wanted = {move.new: move for move in found}
    with database.write() as txn:
        # move_memories checks each change against the store again: `known` was read before this transaction.
        done = move_memories(
            txn,
            [KeyChange(known[move.old].id, move.old, move.new, folder_of(move.new)) for move in wanted.values()],
            now,
        )
    return [wanted[each.new] for each in done]


def follow_moves(known: Known, moved: Iterable[FileMove]) -> dict[str, KnownFile]:
    """Return the known files after the moves."""
    news = {move.old: move.new for move in moved}
    after = {key: stored for key, stored in known.items() if key not in news}
    # TO_BE_READ: the file is read even if its text is the same, because the words of its old path are still indexed.
    after |= {new: known[old]._replace(mtime_ns=TO_BE_READ) for old, new in news.items()}
    return dict(sorted(after.items()))


def _read(files: Iterable[FoundFile], texts_of: set[str]) -> _Read:
    hashes: dict[str, str] = {}
    texts: dict[str, str] = {}
    for file in files:
        try:
            text, _ = file.read()
        except SpeckitError:  # reported when the file is read for indexing
            continue
        # All blank files share one hash, which is never matched.
        hashes[file.key] = content_hash(text) if text.strip() else BLANK
        if file.key in texts_of and len(text) <= moves.LONGEST_COMPARED and len(texts) <= moves.MOST_COMPARED:
            texts[file.key] = text[front_matter.parse(text, file.key)[0].body_start :]
    return _Read(hashes, texts)


def _vanished(root: Path, known: Known, decision: Decision, elsewhere: Callable[[str], bool]) -> set[str]:
    """Return the keys outside the run's scope whose files do not exist, if the run has new files to match them."""
    if all(file.key in known for file in decision.read):
        return set()
    seen = {file.key for file in decision.read} | {*decision.skip, *decision.gone}
    return {
        key
        for key, stored in known.items()
        if stored.mtime_ns is not None and key not in seen and not may_exist(root / key) and not elsewhere(key)
    }
