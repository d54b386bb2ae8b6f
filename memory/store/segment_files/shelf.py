"""Where the segment of a store lies, and whether it may be used.

It lies in the folder `<store file>.segments`. Only the file that the store vouches for is used, and only when all of it
is known to be as it was written. Whatever is wrong, the answer is None and never an error: SQLite answers then.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import apsw

from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.segment_files import trusted_segment
from speckit_memory.memory.store.segment_files.container import Container, TornError
from speckit_memory.memory.store.segment_files.finding import Finding
from speckit_memory.memory.store.segment_files.stamp import Look, look, stamp, stamped, unstamp
from speckit_memory.memory.store.segment_files.trusted_segment import VERSION, Vouched

ENDING = ".segments"
READ_AT_ONCE = 1 << 30
"""Bytes. A file that nobody is known to have read, as in a copied project, is read at once when it is no larger: that
takes a tenth of what a search without it does (docs/decisions/0078). A larger one is read by who has the time."""
FEWEST = 100
"""Memories. Fewer are read from the tables as fast as from a file."""

_read: dict[Path, tuple[Look, str]] = {}
"""The files that this process has read to their end: of each folder the last one, as it looked, with its digest."""
_guard = Lock()


@dataclass(frozen=True, slots=True)
class Held:
    """What the shelf of a store holds: a segment that may be used and how many changes are missing in it, or why not.

    All are None where none was ever written.
    """

    segment: Container | None = None
    vouched: Vouched | None = None
    behind: int | None = None
    finding: Finding | None = None


def folder_of(store: Path) -> Path:
    """The folder of a store's segments, beside the file itself where the path is a link."""
    real = os.path.realpath(store)
    return Path(real + ENDING)


def usable(connection: apsw.Connection, store: Path, *, patient: bool = False) -> Container | None:
    """The segment of the state that the connection's transaction sees, or of an earlier one from which the log of
    changes leads there (`changes.since(segment.about["sequence"])`).

    A large file that is not known to be good is read when the caller is `patient` alone.
    """
    return held(connection, store, patient=patient).segment


def held(connection: apsw.Connection, store: Path, *, patient: bool = False, thorough: bool = False) -> Held:
    """As `usable`, with what keeps the segment from being used. `thorough`: it is read to its end in any case."""
    trusted = trusted_segment.read(connection)
    if trusted is None:
        return Held()
    if trusted.version != VERSION:
        return Held(None, trusted, None, Finding("version", f"{trusted.name} was written by another version"))
    behind = trusted_segment.behind(connection, trusted)
    if behind is None:
        detail = f"{trusted.name} is of a state that the log of changes does not reach back to"
        return Held(None, trusted, None, Finding("stale", detail))
    found = _opened(folder_of(store), trusted, patient, thorough)
    if isinstance(found, Finding):
        return Held(None, trusted, behind, found)
    return Held(found, trusted, behind)


def due(connection: apsw.Connection, store: Path) -> bool:
    """Whether a segment should be written: there are memories enough, and none that is usable is near enough and free
    of what was forgotten on purpose.

    For who would write it: a file that nobody is known to have read is read.
    """
    return needed(connection) and _outdated(connection, store)


def over(connection: apsw.Connection, store: Path) -> bool:
    """Whether the segment should go: another one would be due, and so few memories are left that they need none."""
    return not needed(connection) and trusted_segment.read(connection) is not None and _outdated(connection, store)


def needed(connection: apsw.Connection) -> bool:
    """Whether there are memories enough."""
    return memories_of(connection) >= FEWEST


def memories_of(connection: apsw.Connection) -> int:
    """How many memories there are."""
    return int(value(connection, "SELECT count(*) FROM memories"))


def most_behind(memories: int) -> int:
    """So many documents may have changed since a segment was written: a thousand, or a tenth of the memories where that
    is more, but never so many that the log of changes could forget some before another is written."""
    return min(max(1_000, memories // 10), KEPT // 2)


def blocked(folder: Path) -> Finding | None:
    """What is in the way where the folder should be; a link too, as others could put files where it leads."""
    try:
        mode = folder.lstat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return Finding("blocked", f"{folder} cannot be looked at: {error.strerror}")
    if stat.S_ISDIR(mode):
        return None
    return Finding("blocked", f"{folder} is {'a link' if stat.S_ISLNK(mode) else 'no folder'}")


def _outdated(connection: apsw.Connection, store: Path) -> bool:
    """Whether none is usable, near enough and free of what was forgotten on purpose; a file that nobody is known to
    have read is read."""
    now = held(connection, store, patient=True)
    if now.segment is None or now.vouched is None or trusted_segment.holds_forgotten(connection, now.vouched):
        return True
    return trusted_segment.to_take_in(connection, now.vouched) > most_behind(memories_of(connection))


def _opened(folder: Path, trusted: Vouched, patient: bool, thorough: bool) -> Container | Finding:
    if in_the_way := blocked(folder):
        return in_the_way
    path = folder / trusted.name
    try:
        seen = look(path)
        if seen is None:
            return Finding("foreign", f"{path} is no regular file")
        segment = Container(path)
        if segment.digest != trusted.digest:
            return Finding("foreign", f"{path} is not the file that the store vouches for")
        if seen.bytes != trusted.bytes:
            return Finding("torn", f"{path} has {seen.bytes:,} bytes and was written with {trusted.bytes:,}")
        if not thorough and _known(path, seen, trusted.digest):
            return segment
        if not (thorough or patient or seen.bytes <= READ_AT_ONCE):
            return Finding("unread", f"{path} was copied or touched since it was written, and not read since")
        segment.verify()
        if look(path) != seen:
            return Finding("unread", f"{path} was touched while it was read")
    except FileNotFoundError:
        return Finding("missing", f"{path} is not there")
    except OSError as error:
        return Finding("failed", f"{path} cannot be read: {error.strerror or error}")
    except (TornError, ValueError, TypeError) as error:
        forget(path)
        return Finding("torn", f"{path} is damaged: {error}")
    note(path, seen, trusted.digest)
    return segment


def _known(path: Path, seen: Look, digest: str) -> bool:
    with _guard:
        if _read.get(path.parent) == (seen, digest):
            return True
    return stamped(path, seen, digest)


def note(path: Path, seen: Look, digest: str) -> None:
    """Remembers that a file of this digest was good when it looked like this, for this process and for all others."""
    with _guard:
        _read[path.parent] = seen, digest
    try:
        if not stamped(path, seen, digest):
            stamp(path, seen, digest)
    except OSError:
        return  # a folder that may only be read: each process reads the file once


def forget(path: Path) -> None:
    """Takes back that a file is good: a disk may lose what no program wrote to."""
    with _guard:
        _read.pop(path.parent, None)
    with suppress(OSError):
        unstamp(path)
