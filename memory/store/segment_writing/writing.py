"""Writes the segment of a store: one writer at a time over all processes, atomically, and trusted as the last step.

A writer killed at any moment leaves the previous segment in force, and at most an untrusted file, which the next writer
removes. Nothing here is needed for an answer.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.partial_file import is_partial
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.store_file import FOLDER_FOR_THE_OWNER
from speckit_memory.memory.store.segment_files import stamp
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore, TrustedSegment

LOCK = "writer"
"""Base name of the lock file (`.lock` is appended); the system releases the lock when its holder ends."""
IGNORED = "*\n"
"""Contents of the folder's `.gitignore`, for Git and index runs: no file in it is written by people."""
LOOK_SECONDS = 0.1
"""How long a writer waits for the lock, which `being_written` holds for a moment."""
SHARE_OF_STORE = 0.75
"""Disk space needed, as a share of the store's file: a segment takes half of it, its temporary files a fifth."""
LEAST_LEFT = 32 << 20
"""Bytes left free on the disk, or a tenth of the store if that is more."""
_SEGMENT = re.compile(r"\.?[0-9a-f]{16}\.seg(\..*)?")
_one = Lock()
"""A process writes one segment at a time, for all stores."""


Build = Callable[[Connection, Path], TrustedSegment]
"""Writes the state that the connection's transaction sees to the path, atomically."""


def write(database: Database, build: Build, *, only_if_due: bool = True) -> TrustedSegment | None:
    """Write a segment of the latest state and make the store trust it. Leftovers of earlier writers and segments that
    are no longer needed are removed in any case.

    Returns None when none is due, another writer is at work, or memories were forgotten meanwhile. Raises E029 when it
    cannot be written; the store and its previous segment are then unchanged.
    """
    segments = SegmentStore(database)
    # Never wait: a segment is not urgent.
    # Order of locks: `_one` (within the process), the lock file (over all processes), SQLite's write lock.
    if not _one.acquire(blocking=False):
        return None
    try:
        with segments.recording_failures(), database.snapshot_read():
            step = segments.next_step() if only_if_due else "write"
        if step is None and not leftovers(database):
            return None
        with segments.recording_failures(), ExitStack() as held:
            _make(segments)
            try:
                held.enter_context(locked(segments.folder / LOCK, patience=LOOK_SECONDS))
            except TimeoutError:
                return None
            if step == "remove":
                segments.give_up()
            sweep(database)
            return _write_segment(database, segments, build) if step == "write" else None
    finally:
        _one.release()


def write_copied(database: Database, source: Database) -> TrustedSegment | None:
    """Write the segment that `source` trusts for this copy of it, which has the same rows and the same history.

    Returns None if it has none. Raises E029 as `write`.
    """
    import shutil  # a search has no use for it

    found = SegmentStore(source).status(patient=True)
    if found.segment is None or found.trusted is None:
        return None
    file, trusted = SegmentStore(source).folder / found.trusted.name, found.trusted

    def build(_: Connection, path: Path) -> TrustedSegment:
        shutil.copyfile(file, path)
        return trusted._replace(name=path.name)

    return write(database, build)


def _require_room(database: Database, folder: Path) -> None:
    """Raise E029 if a segment and its temporary files would leave the store too little disk space: saving memories must
    not fail because of a file that only speeds up answers."""
    import shutil  # a search has no use for it

    if database.shared:  # its file is a link
        store = database.reader().pragma("page_count") * database.reader().pragma("page_size")
    else:
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
    """Total size of a store's file and its write-ahead log, which may vanish at any time."""
    size = 0
    for file in (store, store.with_name(f"{store.name}-wal")):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def _write_segment(database: Database, segments: SegmentStore, build: Build) -> TrustedSegment | None:
    _require_room(database, segments.folder)
    path = segments.folder / f"{secrets.token_hex(8)}.seg"
    try:
        with database.yielding_read() as connection:
            segment = build(connection, path)
        seen = stamp.look(path)
        # Another program may have replaced or truncated the file since it was closed.
        if seen is None or seen.bytes != segment.bytes:
            raise SpeckitError("E029", f"{path} was changed while it was being written")
        stamp.note(path, seen, segment.digest)
        with database.write() as txn:
            # Trusted last: from here on other processes may open it.
            trusted = segments.trust(txn, segment)
            if not (trusted or segments.holds_forgotten(segment)):
                raise SpeckitError("E029", f"meanwhile, {database.path} was set to another state, or changed too much")
    except BaseException:
        for file in (path, path.with_name(path.name + stamp.ENDING)):
            with suppress(OSError):
                file.unlink()
        raise
    sweep(database)  # including the new file if it contains memories forgotten meanwhile
    return segment if trusted else None


def leftovers(database: Database) -> list[Path]:
    """Our files that the store does not trust: earlier segments, and files of killed writers.

    While a segment is being written, its files are included.
    """
    segments = SegmentStore(database)
    trusted = segments.trusted()
    kept = {trusted.name, trusted.name + stamp.ENDING} if trusted else set()
    try:
        if segments.blocking_file():
            return []
        ours = (file for file in segments.folder.iterdir() if _SEGMENT.fullmatch(file.name) or is_partial(file.name))
        return sorted(file for file in ours if file.name not in kept)
    except OSError:
        return []


def sweep(database: Database) -> None:
    """Remove the leftovers; the caller holds the lock. A process that has one mapped keeps its pages, except on
    Windows, where the removal fails and is left to the next writer."""
    for file in leftovers(database):
        with suppress(OSError):
            if file.is_dir() and not file.is_symlink():
                file.rmdir()
            else:
                file.unlink()


def being_written(database: Database) -> bool:
    """Whether a writer is at work, in this process or another."""
    try:
        with locked(SegmentStore(database).folder / LOCK, patience=0.0):
            return False
    except TimeoutError:
        return True
    except OSError:
        return False


def _make(segments: SegmentStore) -> None:
    """Create the folder if needed, for its owner alone: a segment contains the words of documents."""
    with suppress(FileExistsError):
        segments.folder.mkdir(FOLDER_FOR_THE_OWNER)
    if in_the_way := segments.blocking_file():
        raise SpeckitError("E029", in_the_way.detail, hint=in_the_way.hint)
    with suppress(FileExistsError), (segments.folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write(IGNORED)
