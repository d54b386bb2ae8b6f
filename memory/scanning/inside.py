"""Opens what lies inside a workspace, and never what lies outside of it, whatever anybody does to names meanwhile.

Each folder on the way is opened from the one above it, and no link is followed by the system. A link is followed by us:
we ask where it leads, and go there from the root in the same way. A hard link to a file outside of the workspace cannot
be told from a file.
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
"""Windows opens no path from a folder: there, what a name leads to is looked at before."""
_LINK = (ELOOP, EMLINK, ENOTDIR)
"""How systems refuse a link on the way that is not to be followed."""
_LONGEST = 4096
"""Bytes of a path that can be opened in one piece; longer ones can be made, but not be named."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Content:
    """What a file held when it was read, and its time of modification just before, in nanoseconds since 1970."""

    data: bytes
    mtime_ns: int


def read(root: Path, key: str, largest: int) -> Content:
    """The content of the regular file with this path relative to the root.

    Raises OSError: EXDEV when a link leads out of the root, EFBIG for more than `largest` bytes, EINVAL for what is no
    regular file.
    """
    descriptor = _opened(root, PurePath(key), folder=False)
    try:
        before = os.fstat(descriptor).st_mtime_ns
        return Content(content(descriptor, largest), before)
    finally:
        os.close(descriptor)


@contextmanager
def folder(root: Path, key: str) -> Iterator[int]:
    """A descriptor of the folder with this path relative to the root. Raises OSError, EXDEV as `read`."""
    descriptor = _opened(root, PurePath(key), folder=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


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
            if led == path:  # no link: something else is used as a folder, or a link leads to itself
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
            below = os.open(part, _FOLDER | NO_LINK, dir_fd=at)
            os.close(at)
            at = below
        return os.dup(at) if folder else open_regular(parts[-1], NO_LINK, at)
    finally:
        os.close(at)


def _followed(root: Path, path: PurePath) -> PurePath:
    """Where a path leads, relative to the root. Raises OSError with EXDEV when that is outside."""
    led, top = Path(os.path.realpath(root / path)), os.path.realpath(root)
    if not led.is_relative_to(top):
        raise OSError(EXDEV, LEADS_OUT)
    return led.relative_to(top)
