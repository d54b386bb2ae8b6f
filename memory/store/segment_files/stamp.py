"""That a file was read to its end and is what was written: noted beside it, so that it is read once and not at every
opening.

The note holds for the file as it was then. Whatever writes to a file, puts another in its place or sets its times
changes what the file system says of it, and the note is worth nothing any more. A note is no proof against who may
write to the folder: that one may write to the store too.
"""

from __future__ import annotations

import json
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.files.written_file import written

ENDING = ".stamp"
_LARGEST = 4096


class Look(NamedTuple):
    """What the file system says of a file. The time of its last change of any kind (`changed_ns`) is not to be set.

    The device is left out: on some systems it has another number after every start.
    """

    inode: int
    bytes: int
    mtime_ns: int
    changed_ns: int


def look(path: Path) -> Look | None:
    """A regular file as it is now; None for what is none, a link among them. Raises OSError."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return None
    return Look(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def stamp(path: Path, seen: Look, digest: str) -> None:
    """Notes that the file of this digest was good when it looked like this. Raises OSError."""
    with written(_beside(path)) as file:
        json.dump({"file": list(seen), "digest": digest}, file)


def stamped(path: Path, seen: Look, digest: str) -> bool:
    """Whether that was noted of the file as it looks now."""
    with suppress(OSError, ValueError):
        noted = json.loads(read_text(_beside(path), _LARGEST))
        return isinstance(noted, dict) and noted == {"file": list(seen), "digest": digest}
    return False


def unstamp(path: Path) -> None:
    """Takes the note of a file away. Raises OSError."""
    _beside(path).unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ENDING)
