"""Locates the segment of a store and decides whether it may be used.

Segments are in the folder `<store file>.segments`. Only the file recorded in the store is used, and only when all of
its contents are known to be intact. Any problem gives None instead of an error: SQLite answers then.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.segment_files import stamp, trusted_segment
from speckit_memory.memory.store.segment_files.container import Container, TornError
from speckit_memory.memory.store.segment_files.findings import Finding
from speckit_memory.memory.store.segment_files.trusted_segment import VERSION, TrustedSegment

ENDING = ".segments"
READ_AT_ONCE = 1 << 30
"""Bytes. A file not known to have been read, as in a copied project, is checked on opening up to this size, in a tenth
of the time of a search without it (docs/decisions/0078). Larger files are checked by callers that have time."""
FEWEST = 100
"""Memories. Fewer are read from the tables as fast as from a file."""


@dataclass(frozen=True, slots=True)
class SegmentStatus:
    """The state of a store's segment: a usable one and the number of changes it lacks, or why it is not usable.

    All fields are None if none was ever written.
    """

    segment: Container | None = None
    vouched: TrustedSegment | None = None
    behind: int | None = None
    finding: Finding | None = None


def folder_of(store: Path) -> Path:
    """The folder of a store's segments, next to the actual file if the path is a link."""
    real = os.path.realpath(store)
    return Path(real + ENDING)


def usable(connection: Connection, store: Path, *, patient: bool = False) -> Container | None:
    """The segment of the state that the connection's transaction sees, or of an earlier state from which the log of
    changes leads to it (`changes.since(segment.about["sequence"])`).

    A large file that is not known to be intact is only checked when the caller is `patient`.
    """
    return segment_status(connection, store, patient=patient).segment


def segment_status(
    connection: Connection, store: Path, *, patient: bool = False, thorough: bool = False
) -> SegmentStatus:
    """As `usable`, with the problem that prevents the use of the segment.

    Args:
        connection: An open transaction.
        store: Path of the store's file.
        patient: Check a large file that is not known to be intact.
        thorough: Check the file completely even if it is known to be intact.
    """
    trusted = trusted_segment.read(connection)
    if trusted is None:
        return SegmentStatus()
    if trusted.version != VERSION:
        return SegmentStatus(None, trusted, None, Finding("version", f"{trusted.name} was written by another version"))
    behind = trusted_segment.behind(connection, trusted)
    if behind is None:
        detail = f"{trusted.name} is of a state that the log of changes does not reach back to"
        return SegmentStatus(None, trusted, None, Finding("stale", detail))
    found = _opened(folder_of(store), trusted, patient, thorough)
    if isinstance(found, Finding):
        return SegmentStatus(None, trusted, behind, found)
    return SegmentStatus(found, trusted, behind)


def due(connection: Connection, store: Path) -> bool:
    """Whether a segment should be written: there are enough memories, and no usable segment is recent enough and free
    of deliberately forgotten memories.

    For writers: checks a file that is not known to be intact.
    """
    return is_segment_needed(connection) and _outdated(connection, store)


def is_superfluous(connection: Connection, store: Path) -> bool:
    """Whether the segment should be removed: it is outdated, and there are too few memories for another one."""
    return (
        not is_segment_needed(connection)
        and trusted_segment.read(connection) is not None
        and _outdated(connection, store)
    )


def is_segment_needed(connection: Connection) -> bool:
    """Whether there are enough memories for a segment."""
    return memories_of(connection) >= FEWEST


def memories_of(connection: Connection) -> int:
    """Number of memories."""
    return int(value(connection, "SELECT count(*) FROM memories"))


def most_behind(memories: int) -> int:
    """How many documents may change before a segment is rewritten: a thousand, or a tenth of the memories if that is
    more, but fewer than the log of changes keeps."""
    return min(max(1_000, memories // 10), KEPT // 2)


def blocking_file(folder: Path) -> Finding | None:
    """A finding if something other than a folder is at this path; links too, as they could lead anywhere."""
    try:
        mode = folder.lstat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return Finding("blocked", f"{folder} cannot be read: {error.strerror}")
    if stat.S_ISDIR(mode):
        return None
    return Finding("blocked", f"{folder} is {'a link' if stat.S_ISLNK(mode) else 'not a folder'}")


def _outdated(connection: Connection, store: Path) -> bool:
    """Whether no usable segment is recent enough and free of deliberately forgotten memories; checks a file that is not
    known to be intact."""
    now = segment_status(connection, store, patient=True)
    if now.segment is None or now.vouched is None or trusted_segment.holds_forgotten(connection, now.vouched):
        return True
    return trusted_segment.catch_up_cost(connection, now.vouched) > most_behind(memories_of(connection))


def _opened(folder: Path, trusted: TrustedSegment, patient: bool, thorough: bool) -> Container | Finding:
    if in_the_way := blocking_file(folder):
        return in_the_way
    path = folder / trusted.name
    try:
        seen = stamp.look(path)
        if seen is None:
            return Finding("foreign", f"{path} is not a regular file")
        segment = Container.open(path)
        if segment.digest != trusted.digest:
            return Finding("foreign", f"{path} is not the file recorded in the store")
        if seen.bytes != trusted.bytes:
            return Finding("torn", f"{path} has {seen.bytes:,} bytes and was written with {trusted.bytes:,}")
        if not thorough and stamp.is_known(path, seen, trusted.digest):
            return segment
        if not (thorough or patient or seen.bytes <= READ_AT_ONCE):
            return Finding("unread", f"{path} was copied or touched since it was written, and not checked since")
        segment.verify()
        # The check is only valid for the metadata seen before reading.
        if stamp.look(path) != seen:
            return Finding("unread", f"{path} was touched while it was being read")
    except FileNotFoundError:
        return Finding("missing", f"{path} does not exist")
    except OSError as error:
        return Finding("failed", f"{path} cannot be read: {error.strerror or error}")
    except (TornError, ValueError, TypeError) as error:
        stamp.forget(path)
        return Finding("torn", f"{path} is damaged: {error}")
    # Other processes can now skip the check.
    stamp.note(path, seen, trusted.digest)
    return segment
