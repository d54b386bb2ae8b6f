"""Writes files below a folder: atomically, and never through a link that leads out of it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from errno import EEXIST, ENOTSUP, EPERM, EXDEV
from pathlib import Path

from speckit_memory.config.files.partial_file import PREFIX, complete, is_partial, partial_file
from speckit_memory.config.files.regular_file import NO_LINK
from speckit_memory.memory.scanning import inside

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | getattr(os, "O_CLOEXEC", 0)
LEFT_SECONDS = 3600.0
"""A temporary file not finished within this time belongs to a killed process."""


def put_file(top: Path, path: str, data: bytes, *, over: bool, mtime_ns: int | None = None, sync: bool = False) -> None:
    """Write a file and create its parent folders.

    Args:
        top: The folder that contains all files.
        path: Relative path of the file.
        data: Its contents.
        over: Whether an existing file may be replaced.
        mtime_ns: Modification time in nanoseconds since 1970; None for the present.
        sync: Whether to fsync before the file appears.

    Raises:
        OSError: EEXIST if the name is taken, EXDEV if a link leads out of the folder, and others.
    """
    file = top / path
    # Checked before creating folders: a linked folder must not be followed out of the top.
    if not Path(os.path.realpath(file.parent)).is_relative_to(os.path.realpath(top)):
        raise OSError(EXDEV, inside.LEADS_OUT)
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if over and file.is_file() else 0o666
    with partial_file(file.parent, mode) as (stream, whole):
        stream.write(data)
        complete(stream, sync=sync)
        if mtime_ns is not None:
            with suppress(OSError, OverflowError):  # the file system cannot represent this time
                os.utime(whole, ns=(mtime_ns, mtime_ns))
        if over:
            if file.is_dir() or file.is_symlink():
                raise OSError(EEXIST, "a link or a folder has its name")
            whole.replace(file)
            return
        try:
            os.link(whole, file)  # fails if the name is taken, unlike a rename
        except OSError as error:
            if error.errno not in (EPERM, ENOTSUP):
                raise
            # O_EXCL reserves the name, so that the rename cannot overwrite another program's file.
            os.close(os.open(file, _NEW))  # a file system without hard links
            whole.replace(file)


def clear_partial(top: Path) -> None:
    """Remove the temporary files of killed processes below a folder that only one process writes to."""
    for folder, _, names in os.walk(top):
        for name in names:
            if name.startswith(PREFIX) and name.endswith(".tmp"):
                with suppress(OSError):
                    Path(folder, name).unlink()


def clear_left(folder: Path) -> None:
    """Remove old temporary files of killed processes from a folder that other processes write to as well."""
    long_ago = time.time() - LEFT_SECONDS
    with suppress(OSError), os.scandir(folder) as entries:
        left = [entry for entry in entries if is_partial(entry.name)]
        for entry in left:
            if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < long_ago:
                Path(entry.path).unlink(missing_ok=True)
