"""Writing the segment of a store: one writer after the other over all processes, whole or not at all, vouched for last.

Whoever is killed at any moment leaves the segment before in force, and at most a file that nobody trusts, which the
next writer removes. Nothing here is needed for an answer.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import Protocol

import apsw

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.partial_file import is_partial
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.store_file import FOLDER_FOR_THE_OWNER
from speckit_memory.memory.store.segment_files import failures, shelf, stamp, trusted_segment
from speckit_memory.memory.store.segment_files.trusted_segment import Vouched

LOCK = "writer"
"""The lock is held on a file of this name and `.lock`; the system gives it up when its holder ends, however it ends."""
IGNORED = "*\n"
"""What the folder tells Git, and an index run: nothing in it was written by people."""
LOOK_SECONDS = 0.1
"""So long a writer waits for the lock: who looks whether one is at work holds it for a moment."""
SHARE_OF_STORE = 0.75
"""A segment takes half as much as the store's file, and what is sorted meanwhile a fifth."""
LEAST_LEFT = 32 << 20
"""So many bytes, or a tenth of the store where that is more, are left free on the disk."""
_SEGMENT = re.compile(r"\.?[0-9a-f]{16}\.seg(\..*)?")
_one = Lock()
"""One segment at a time is written in a process, whatever the store."""


class Built(Protocol):
    """What a builder says of its file: the last change that it holds, SHA-256 of its table, and its size."""

    @property
    def sequence(self) -> int:
        """The number of the last change."""

    @property
    def digest(self) -> str:
        """In hexadecimal digits."""

    @property
    def bytes(self) -> int:
        """Of the whole file."""


Build = Callable[[apsw.Connection, Path], Built]
"""Writes the state that the connection's transaction sees to the path, whole or not at all."""


def write(database: Database, build: Build, *, only_if_due: bool = True) -> Vouched | None:
    """Writes a segment of the latest state and has the store trust it; None when none is due, another writer is at
    it, or memories were forgotten meanwhile. What earlier writers left is removed in any case, as is what is over.

    Raises E029 when it cannot be written; the store and the segment before stay as they were.
    """
    folder = shelf.folder_of(database.path)
    if not _one.acquire(blocking=False):
        return None
    try:
        with failures.told(database, folder), database.snapshot_read() as connection:
            due, over = shelf.due(connection, database.path), shelf.over(connection, database.path)
        if not (due or over) and only_if_due and not leftovers(database):
            return None
        with failures.told(database, folder), ExitStack() as held:
            _make(folder)
            try:
                held.enter_context(locked(folder / LOCK, patience=LOOK_SECONDS))
            except TimeoutError:
                return None
            if over:
                with database.write() as txn:
                    trusted_segment.give_up(txn)
            sweep(database)
            return _written(database, folder, build) if due or not only_if_due else None
    finally:
        _one.release()


def forget(database: Database) -> None:
    """Memories were forgotten on purpose: a segment that may hold them is due to be written anew, or to be taken away,
    and one that is being written of an earlier state is not trusted."""
    with database.write() as txn:
        trusted_segment.forget(txn)


def _require_room(database: Database, folder: Path) -> None:
    """Raises E029 where a segment, and what waits on the disk while it is made, would leave the store too little room:
    who saves something must not fail for a file that only makes answers quicker."""
    import shutil  # a search has no use for it

    store = _size(database.path.resolve())
    wanted = int(store * SHARE_OF_STORE)
    kept = max(LEAST_LEFT, store // 10)
    free = shutil.disk_usage(folder).free
    if free < wanted + kept:
        raise SpeckitError(
            "E029",
            f"no segment could be written in {folder}: {free / 1e6:,.0f} MB are free on the disk; up to "
            f"{wanted / 1e6:,.0f} MB are needed for it, and {kept / 1e6:,.0f} MB are left to the store",
        )


def _size(store: Path) -> int:
    """The bytes of a store's file and of its log, which lies beside the file itself and may go at any time."""
    size = 0
    for file in (store, store.with_name(f"{store.name}-wal")):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def _written(database: Database, folder: Path, build: Build) -> Vouched | None:
    _require_room(database, folder)
    path = folder / f"{secrets.token_hex(8)}.seg"
    try:
        with database.snapshot_read() as connection:
            last = trusted_segment.last_change(connection)
            built = build(connection, path)
        seen = stamp.look(path)
        if built.sequence != last[0] or seen is None or seen.bytes != built.bytes:
            raise SpeckitError("E029", f"{path} was changed while it was written")
        shelf.note(path, seen, built.digest)
        segment = Vouched(path.name, built.digest, built.bytes, *last)
        with database.write() as txn:
            trusted = trusted_segment.vouch(txn, segment)
            if trusted:
                failures.clear(txn, database.path)
            elif not trusted_segment.holds_forgotten(txn.connection, segment):
                raise SpeckitError("E029", f"{database.path} was set to another state, or changed much, meanwhile")
    except BaseException:
        for file in (path, path.with_name(path.name + stamp.ENDING)):
            with suppress(OSError):
                file.unlink()
        raise
    sweep(database)  # of the file itself, should it hold what was forgotten meanwhile
    return segment if trusted else None


def leftovers(database: Database) -> list[Path]:
    """Files of ours that the store does not vouch for: of earlier segments, and of writers that were killed.

    While somebody writes, the files of that one are among them.
    """
    folder = shelf.folder_of(database.path)
    with database.snapshot_read() as connection:
        trusted = trusted_segment.read(connection)
    kept = {trusted.name, trusted.name + stamp.ENDING} if trusted else set()
    try:
        if shelf.blocked(folder):
            return []
        ours = (file for file in folder.iterdir() if _SEGMENT.fullmatch(file.name) or is_partial(file.name))
        return sorted(file for file in ours if file.name not in kept)
    except OSError:
        return []


def sweep(database: Database) -> None:
    """Removes the leftovers; the caller holds the lock. Who has one of the files mapped keeps its pages, except on
    Windows, where removing it fails and is left to the next writer."""
    for file in leftovers(database):
        with suppress(OSError):
            if file.is_dir() and not file.is_symlink():
                file.rmdir()
            else:
                file.unlink()


def being_written(database: Database) -> bool:
    """Whether a writer is at work, in this process or another."""
    try:
        with locked(shelf.folder_of(database.path) / LOCK, patience=0.0):
            return False
    except TimeoutError:
        return True
    except OSError:
        return False


def _make(folder: Path) -> None:
    """Makes the folder unless it is there, for its owner alone: a segment holds the words of what files say."""
    with suppress(FileExistsError):
        folder.mkdir(FOLDER_FOR_THE_OWNER)
    if in_the_way := shelf.blocked(folder):
        raise SpeckitError("E029", in_the_way.detail, hint=in_the_way.hint)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write(IGNORED)
