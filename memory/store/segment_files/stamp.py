"""A note next to a file that it was read completely and is intact, so that it is checked once and not at every opening.

The note is valid for the file's metadata at that time. Writing to the file, replacing it or setting its times changes
the metadata and invalidates the note. It is no protection against an attacker who can write to the folder: that
attacker could write to the store as well.
"""

from __future__ import annotations

import json
import stat
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.files.written_file import written

ENDING = ".stamp"
_LARGEST = 4096


class FileStat(NamedTuple):
    """The metadata of a file. Programs cannot set the change time (`changed_ns`).

    The device is left out: on some systems its number changes with every start.
    """

    inode: int
    bytes: int
    mtime_ns: int
    changed_ns: int


_read: dict[Path, tuple[FileStat, str]] = {}
"""The last file of each folder that this process has read completely, with its metadata and digest."""
# guards `_read`: held for a look-up, never while a file is read
_guard = Lock()


def look(path: Path) -> FileStat | None:
    """The metadata of a regular file; None for anything else, including links. Raises OSError."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileStat(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def note(path: Path, seen: FileStat, digest: str) -> None:
    """Record that a file with this digest and metadata is intact, for this process and for all others."""
    with _guard:
        _read[path.parent] = seen, digest
    with suppress(OSError):  # a read-only folder: each process reads the file once
        if not is_stamped(path, seen, digest):
            with written(_note_path(path)) as file:
                json.dump({"file": list(seen), "digest": digest}, file)


def forget(path: Path) -> None:
    """Withdraw the record that a file is intact: a disk may lose data that no program has touched."""
    with _guard:
        _read.pop(path.parent, None)
    with suppress(OSError):
        _note_path(path).unlink(missing_ok=True)


def is_known(path: Path, seen: FileStat, digest: str) -> bool:
    """Whether a file with this digest and metadata was read completely, by this process or another."""
    with _guard:
        if _read.get(path.parent) == (seen, digest):
            return True
    return is_stamped(path, seen, digest)


def is_stamped(path: Path, seen: FileStat, digest: str) -> bool:
    """Whether there is a note for this digest and metadata."""
    with suppress(OSError, ValueError):
        noted = json.loads(read_text(_note_path(path), _LARGEST))
        return isinstance(noted, dict) and noted == {"file": list(seen), "digest": digest}
    return False


def _note_path(path: Path) -> Path:
    return path.with_name(path.name + ENDING)
