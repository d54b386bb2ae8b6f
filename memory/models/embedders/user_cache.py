"""What a process works out of files that hardly ever change, kept for the next process of the same user.

It lies in the folder for caches of the user's account. It is only used when nobody else can have written it, and whole:
a file begins with a checksum of its rest. Whatever is wrong, there is nothing in the cache, and never an error.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from speckit_memory.config.files.regular_file import NO_LINK, READING, content

LARGEST = 16 << 20
"""Bytes of a file."""
MOST_FILES = 16
"""So many files are kept; of more, those written longest ago go."""

_FOLDER = "speckit-memory"
_ENDING = ".kept"
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CHECKSUM = 32
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def load(name: str) -> bytes | None:
    """What was kept under a name, None for nothing usable."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = _folder()
        if folder is None or not _is_ours(folder.lstat(), stat.S_IFDIR):
            return None
        descriptor = os.open(folder / (name + _ENDING), READING | NO_LINK)
        try:
            if not _is_ours(os.fstat(descriptor), stat.S_IFREG):
                return None
            found = content(descriptor, LARGEST)
        finally:
            os.close(descriptor)
        kept = memoryview(found)[_CHECKSUM:]
        return bytes(kept) if sha256(kept).digest() == found[:_CHECKSUM] else None
    return None


def ready() -> bool:
    """Whether something can be kept. Makes the folder where it is missing."""
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
    """Keeps data under a name, in the place of what was kept there; not at all where that cannot be."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = _folder()
        if folder is None or not ready():
            return
        temporary = folder / f"{secrets.token_hex(8)}.tmp"
        try:
            descriptor = os.open(temporary, _WRITING, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(sha256(data).digest())
                file.write(data)
            temporary.replace(folder / (name + _ENDING))
        finally:
            temporary.unlink(missing_ok=True)
        _tidy(folder)


def _folder() -> Path | None:
    """Where the system wants caches of this account to be, None where it does not say."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "") or str(Path.home() / ".cache")
    return Path(base) / _FOLDER if Path(base).is_absolute() else None


def _is_ours(found: os.stat_result, kind: int) -> bool:
    """Whether it is of this kind, belongs to this account, and no other may write to it."""
    if stat.S_IFMT(found.st_mode) != kind:
        return False
    return sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE)


def _tidy(folder: Path) -> None:
    """Removes what is too much, and what a process left that was killed while it wrote."""
    files = sorted(
        (path for path in folder.iterdir() if path.suffix in (_ENDING, ".tmp")),
        key=lambda path: path.lstat().st_mtime_ns,
        reverse=True,
    )
    for path in files[MOST_FILES:]:
        path.unlink(missing_ok=True)
