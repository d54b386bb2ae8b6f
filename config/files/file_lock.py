"""Serialises changes of a file between processes: reading, deciding and writing belong together."""

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
"""Seconds. Changing a file that people edit takes a few of them at most."""
_PAUSE = 0.01


@contextmanager
def locked(file: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Exclude all other processes that lock the same file, which need not exist; its folder must.

    The system releases the lock when its holder ends, in any way. The lock is on a separate file, NAME.lock, since the
    file itself is replaced; it is removed afterwards. Raises TimeoutError after `patience` seconds, and OSError if the
    folder is not writable.
    """
    beside = file.with_name(f"{file.name}.lock")
    last = time.monotonic() + patience
    while (descriptor := _try_lock(beside)) is None:
        if time.monotonic() >= last:
            raise TimeoutError(f"another process holds {beside}")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file, which then stays without locking anything
            beside.unlink()
        os.close(descriptor)


def _try_lock(beside: Path) -> int | None:
    """A descriptor that holds the lock, None while another process holds it."""
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | NO_LINK | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # If the previous holder removed the file after we opened it, the lock is on a file without a name.
        if os.path.samestat(os.fstat(descriptor), beside.stat()):
            return descriptor
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)  # locked by another process, or removed between opening and locking
    return None
