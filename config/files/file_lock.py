"""One process after the other changes a file: what it reads, judges and writes belongs together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from speckit_memory.config.files.regular_file import NO_LINK

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE = 20.0
"""Seconds. Whoever changes a file that people write is done within a few of them."""
_PAUSE = 0.01


@contextmanager
def locked(file: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Keeps out every other process that asks for the same file, which need not be there; its folder must be.

    The system gives the lock up when the process that holds it ends, however it ends. It is held on a further file,
    NAME.lock, as the file itself is replaced; that one is gone afterwards. Raises TimeoutError after `patience`
    seconds, and OSError where nothing can be made in the folder.
    """
    beside = file.with_name(f"{file.name}.lock")
    last = time.monotonic() + patience
    while (descriptor := _held(beside)) is None:
        if time.monotonic() >= last:
            raise TimeoutError(f"another process holds {beside}")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps an open file, which then stays and locks nobody out
            beside.unlink()
        os.close(descriptor)


def _held(beside: Path) -> int | None:
    """A descriptor that holds the lock, None while another process does."""
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | NO_LINK | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), beside.stat()):
            return descriptor
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)  # held by another one, or let go and gone between the opening and the lock
    return None
