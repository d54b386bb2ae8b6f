"""Opens files that users own: once, without blocking, and regular files only.

Between checking a name and opening it, another process may replace the file. The file is therefore opened first, and
the open descriptor is checked and read. A named pipe would block its reader until a writer comes; a device may never
end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EFBIG, EINVAL, EISDIR, ELOOP
from os.path import lexists
from pathlib import Path
from typing import BinaryIO

from speckit_memory.errors import Problem

LARGEST_CONFIGURATION = 1_000_000
"""Bytes of a configuration file. A larger file was not written by hand."""
READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags for opening every file, as far as the system has them."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""The additional flag for a name that must not be a link."""

_PIECE = 65_536
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_bytes(path: Path, largest: int) -> bytes:
    """The contents of a regular file. Raises OSError, also for other files and for more than `largest` bytes."""
    with _closing(open_regular(path)) as descriptor:
        return content(descriptor, largest)


def read_text(path: Path, largest: int = LARGEST_CONFIGURATION, errors: str = "strict") -> str:
    """The UTF-8 text of a regular file, without a byte order mark and with "\\n" as line ending.

    Raises OSError as `read_bytes`, and UnicodeDecodeError when `errors` is "strict".
    """
    text = read_bytes(path, largest).decode("utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_as_written(path: Path) -> str:
    """The UTF-8 text of a configuration file with its byte order mark and line endings. Raises as `read_text`."""
    return read_bytes(path, LARGEST_CONFIGURATION).decode()


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a regular file, at most `size`. Raises OSError."""
    with _closing(open_regular(path)) as descriptor:
        return os.read(descriptor, size)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A regular file of any size, for reading in pieces. Raises OSError."""
    with os.fdopen(open_regular(path), "rb") as file:
        yield file


def open_regular(path: str | Path, flags: int = 0, folder: int | None = None) -> int:
    """A descriptor of a regular file; the caller closes it. Raises OSError, with EINVAL for any other file.

    With `folder`, a descriptor of a folder, the path is relative to it.
    """
    try:
        # checked before opening as well: merely opening a device may trigger it
        _require_regular(os.stat(path, dir_fd=folder, follow_symlinks=not flags & NO_LINK).st_mode)
        descriptor = os.open(path, READING | flags, dir_fd=folder)
    except ValueError as error:  # a NUL character, which is invalid in names on all systems
        raise OSError(EINVAL, "a name cannot contain a NUL character") from error
    try:
        # Checked again on the descriptor: the name may lead to another file by now.
        _require_regular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def content(descriptor: int, largest: int) -> bytes:
    """The contents of an open file. Raises OSError with EFBIG for more than `largest` bytes, even while it grows."""
    size = os.fstat(descriptor).st_size
    # held: bytes read so far; the loop also ends at the first empty read, the end of the file.
    pieces, held = [], 0
    # Read one byte beyond the known size, to notice that the file has grown.
    while size <= largest and (piece := os.read(descriptor, max(_PIECE, size + 1 - held))):
        pieces.append(piece)
        held += len(piece)
        size = max(size, held)
    if size > largest:
        found = "it grew to more bytes while it was being read" if held > largest else f"{size} bytes"
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


def workspace_text(file: Path, read: Callable[[Path], str] = read_text) -> tuple[str | None, list[Problem]]:
    """The text of a file, None if there is none, and the problem if it cannot be read.

    Links are followed. A dangling link is a file that cannot be read: a setting must not be ignored silently.
    """
    try:
        return read(file), []
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not lexists(file):
            return None, []
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        actions = ("make it a readable text file", "remove it")
        return None, [Problem("E110", f"{file} cannot be read: {reason}", actions=actions)]
