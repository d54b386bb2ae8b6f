"""A per-user cache of data derived from files that rarely change, shared between processes.

It is stored in the cache folder of the user's account. A file is only used if no other user can have written it and it
is complete: it begins with a checksum of the rest. Any error counts as a cache miss and is never raised.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from speckit_memory.config.files.partial_file import complete, partial_file
from speckit_memory.config.files.regular_file import NO_LINK, READING, content

LARGEST = 16 << 20
"""Maximum bytes of a file."""
MOST_FILES = 16
"""Maximum number of files; the oldest ones are deleted."""

_FOLDER = "speckit-memory"
_ENDING = ".kept"
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CHECKSUM = 32


def load(name: str) -> bytes | None:
    """Return the data stored under a name, None if there is nothing usable."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = _folder()
        # lstat: a link in place of the folder is refused.
        if folder is None or not _is_ours(folder.lstat(), stat.S_IFDIR):
            return None
        descriptor = os.open(folder / (name + _ENDING), READING | NO_LINK)
        try:
            # Checked on the open descriptor, so that the file cannot be exchanged between check and reading.
            if not _is_ours(os.fstat(descriptor), stat.S_IFREG):
                return None
            found = content(descriptor, LARGEST)
        finally:
            os.close(descriptor)
        kept = memoryview(found)[_CHECKSUM:]
        # Format: 32 bytes of SHA-256, then the data.
        return bytes(kept) if sha256(kept).digest() == found[:_CHECKSUM] else None
    return None


def ready() -> bool:
    """Whether data can be stored. Creates the folder if it is missing."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = _folder()
        if folder is None:
            return False
        if not folder.parent.exists() and _is_ours(folder.parent.parent.lstat(), stat.S_IFDIR):
            folder.parent.mkdir(mode=0o700)
        if not folder.exists() and _is_ours(folder.parent.stat(), stat.S_IFDIR):
            folder.mkdir(mode=0o700)
        return _is_ours(folder.lstat(), stat.S_IFDIR) and os.access(folder, os.W_OK | os.X_OK)
    return False


def keep(name: str, data: bytes) -> None:
    """Store data under a name, replacing earlier data; do nothing if that is not possible."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = _folder()
        if folder is None or not ready():
            return
        # Readers see the old file or the complete new one.
        with partial_file(folder, 0o600) as (file, path):
            file.write(sha256(data).digest())
            file.write(data)
            complete(file, sync=False)
            path.replace(folder / (name + _ENDING))
        _tidy(folder)


def _folder() -> Path | None:
    """Return the folder in the account's standard cache location, None if there is none."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "") or str(Path.home() / ".cache")
    return Path(base) / _FOLDER if Path(base).is_absolute() else None


def _is_ours(found: os.stat_result, kind: int) -> bool:
    """Whether a file is of this kind, belongs to this account, and is not writable by others."""
    if stat.S_IFMT(found.st_mode) != kind:
        return False
    return sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE)


def _tidy(folder: Path) -> None:
    """Delete the oldest excess files, including temporary files of killed processes."""
    files = sorted(
        (path for path in folder.iterdir() if path.suffix in (_ENDING, ".tmp")),
        key=lambda path: path.lstat().st_mtime_ns,
        reverse=True,
    )
    # Newest first, so the excess is the oldest. Another process may delete the same files: a missing one is no error.
    for path in files[MOST_FILES:]:
        path.unlink(missing_ok=True)
