"""Opens the files that people own: once, without waiting, and regular ones alone.

Between a look at a name and its opening anybody may put something else in its place. So the file is opened first, what
was opened is looked at, and that is what is read. A named pipe would keep its reader waiting for a writer, a device may
never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EFBIG, EINVAL, EISDIR, ELOOP
from pathlib import Path
from typing import BinaryIO

LARGEST_CONFIGURATION = 1_000_000
"""Bytes of a file that people write settings in. What is larger was not written by hand."""
READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""How every file is opened; systems differ in what they offer."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""The further flag for a name that must not be that of a link."""

_PIECE = 65_536
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_bytes(path: Path, largest: int) -> bytes:
    """The content of a regular file. Raises OSError, also for what is none and for more than `largest` bytes."""
    with _closing(open_regular(path)) as descriptor:
        return content(descriptor, largest)


def read_text(path: Path, largest: int = LARGEST_CONFIGURATION, errors: str = "strict") -> str:
    """The UTF-8 text of a regular file, without a byte order mark and with "\\n" at the end of its lines.

    Raises OSError as `read_bytes`, and UnicodeDecodeError when `errors` is "strict".
    """
    text = read_bytes(path, largest).decode("utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def as_written(path: Path) -> str:
    """The UTF-8 text of a file of settings with its byte order mark and its ends of lines. Raises as `read_text`."""
    return read_bytes(path, LARGEST_CONFIGURATION).decode()


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a regular file, `size` of them or less. Raises OSError."""
    with _closing(open_regular(path)) as descriptor:
        return os.read(descriptor, size)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A regular file of any size, to be read in pieces. Raises OSError."""
    with os.fdopen(open_regular(path), "rb") as file:
        yield file


def open_regular(path: str | Path, flags: int = 0, folder: int | None = None) -> int:
    """A descriptor of a regular file, to be closed by the caller. Raises OSError, with EINVAL for anything else.

    With `folder`, a descriptor of a folder, the path begins there.
    """
    try:
        # looked at before, too: merely opening a device may set it going
        _require_regular(os.stat(path, dir_fd=folder, follow_symlinks=not flags & NO_LINK).st_mode)
        descriptor = os.open(path, READING | flags, dir_fd=folder)
    except ValueError as error:  # a NUL character, which no system takes for part of a name
        raise OSError(EINVAL, "no name holds a NUL character") from error
    try:
        _require_regular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def content(descriptor: int, largest: int) -> bytes:
    """What an open file holds. Raises OSError with EFBIG for more than `largest` bytes, as which it may grow."""
    size = os.fstat(descriptor).st_size
    pieces, held = [], 0
    while size <= largest and (piece := os.read(descriptor, max(_PIECE, size + 1 - held))):
        pieces.append(piece)
        held += len(piece)
        size = max(size, held)
    if size > largest:
        found = "it grew to more bytes while it was read" if held > largest else f"{size} bytes"
        raise OSError(EFBIG, f"{found}, at most {largest} are read")
    return b"".join(pieces)


def _require_regular(mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(ELOOP, os.strerror(ELOOP))
    if stat.S_ISDIR(mode):
        raise OSError(EISDIR, os.strerror(EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(EINVAL, f"not a regular file, but {_KINDS.get(stat.S_IFMT(mode), 'of another kind')}")


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
