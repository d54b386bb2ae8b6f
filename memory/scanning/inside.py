"""Opens files and folders inside a workspace, and never outside it, even if names change concurrently.

Each folder on the path is opened relative to its parent with O_NOFOLLOW. A link is resolved here, and its target is
opened from the root in the same way. A hard link to a file outside the workspace cannot be detected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EAGAIN, ELOOP, EMLINK, ENAMETOOLONG, ENOTDIR, EXDEV
from pathlib import Path, PurePath

from speckit_memory.config.files.regular_file import NO_LINK, READING, content, open_regular

LEADS_OUT = "the link leads out of the workspace"

_FOLDER = READING | getattr(os, "O_DIRECTORY", 0)
_STEPWISE = os.open in os.supports_dir_fd
"""False on Windows, which cannot open relative to a folder: there the path is resolved before it is opened."""
_LINK = (ELOOP, EMLINK, ENOTDIR)
"""The errors with which systems refuse to follow a link."""
_LONGEST = 4096
"""Bytes of the longest path that can be opened by name; longer ones can exist."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file, and its modification time just before reading, in nanoseconds since 1970."""

    data: bytes
    mtime_ns: int


def read(root: Path, key: str, largest: int) -> FileContent:
    """Read the regular file with this path relative to the root.

    Raises OSError: EXDEV if a link leads out of the root, EFBIG for more than `largest` bytes, EINVAL if it is not a
    regular file.
    """
    descriptor = _opened(root, PurePath(key), folder=False)
    try:
        before = os.fstat(descriptor).st_mtime_ns
        return FileContent(content(descriptor, largest), before)
    finally:
        os.close(descriptor)


@contextmanager
def folder(root: Path, key: str) -> Iterator[int]:
    """Open the folder with this path relative to the root as a descriptor. Raises OSError, EXDEV as `read` does."""
    descriptor = _opened(root, PurePath(key), folder=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """Return what the system says of an error, in lower case and without the path."""
    return (error.strerror or str(error)).lower()


def _opened(root: Path, path: PurePath, *, folder: bool) -> int:
    if len(os.fsencode(root / path)) >= _LONGEST:
        raise OSError(ENAMETOOLONG, os.strerror(ENAMETOOLONG))
    for _ in range(_TRIES):
        try:
            if _STEPWISE:
                return _walked(root, path.parts, folder)
        except OSError as error:
            if error.errno not in _LINK:
                raise
            led = _followed(root, path)
            if led == path:  # not a link: a file used as a folder, or a link to itself
                raise
            path = led
        else:
            place = root / _followed(root, path)
            return os.open(place, _FOLDER) if folder else open_regular(place)
    raise OSError(EAGAIN, "it changed while it was opened")


def _walked(root: Path, parts: tuple[str, ...], folder: bool) -> int:
    at = os.open(root, _FOLDER)
    try:
        for part in parts if folder else parts[:-1]:
            # openat(2) relative to the parent: renaming a folder above cannot redirect the path.
            below = os.open(part, _FOLDER | NO_LINK, dir_fd=at)
            os.close(at)
            at = below
        # dup, because `at` is closed below in any case.
        return os.dup(at) if folder else open_regular(parts[-1], NO_LINK, at)
    finally:
        os.close(at)


def _followed(root: Path, path: PurePath) -> PurePath:
    """Resolve a path, relative to the root. Raises OSError with EXDEV if the target is outside."""
    led, top = Path(os.path.realpath(root / path)), os.path.realpath(root)
    if not led.is_relative_to(top):
        raise OSError(EXDEV, LEADS_OUT)
    return led.relative_to(top)
