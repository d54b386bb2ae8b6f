"""Maps a file so that the mapped bytes stay those of the opened file, even if another program writes to it.

A program that truncates a mapped file kills every process that reads beyond the new end (SIGBUS), and one that writes
to it changes what these processes read. The first possible of three protections is used:

- A read lease (Linux, local file systems). The kernel blocks a program that opens the file for writing or truncates it,
  for at most `/proc/sys/fs/lease-break-time` (45) seconds. Meanwhile a thread replaces the mapping by one of a private
  copy and releases the lease. Free of cost while no program writes.
- A copy in memory of a file of up to `MAX_COPIED` bytes.
- A plain mapping of a larger file. `unchanged`, called before each search, compares the file's metadata. A file that is
  truncated during a search still kills the process.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import BinaryIO

import numpy as np

from speckit_memory.memory.store.file.file_system import file_system_of

if sys.platform == "linux":
    import fcntl

MAX_COPIED = 64 << 20
"""Bytes. Copying this many takes 45 ms of processor time, and each process has its own copy."""
POLL_SECONDS = 0.2
"""Interval between checks of the leases: how long a writing program waits, plus the time for copying."""

# of <sys/mman.h>; the module `mmap` does not export it
_MAP_FIXED = 0x10


class StableMapping(mmap.mmap):
    """A read-only mapping of a whole file. It lives as long as an array that views it."""

    _path: Path
    _descriptor: int
    _opened: tuple[int, ...]
    leased = False
    """Whether the mapped bytes cannot change, as the file is leased or a private copy is mapped."""

    @classmethod
    def of(cls, file: BinaryIO, path: Path) -> StableMapping:
        """Map the open, non-empty file at this path. Raises OSError."""
        mapping = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapping._path = path
        # A lease belongs to the open file description: this descriptor keeps it after `file` is closed.
        mapping._descriptor = os.dup(file.fileno())
        weakref.finalize(mapping, os.close, mapping._descriptor).atexit = False
        mapping._opened = _state(mapping._descriptor)
        return mapping

    def unchanged(self) -> bool:
        """Whether the bytes are those of the file when it was opened, judged by metadata."""
        return self.leased or self._is_untouched()

    def is_wanted(self) -> bool:
        """Whether a program is waiting to write to the file."""
        assert sys.platform == "linux"
        return fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def part(self) -> None:
        """Replace the mapping of the file by one of a private copy, and release the lease.

        The copy is an unnamed file in the same folder, or in memory if that folder is not writable. Without space for
        either, the mapping stays and is no longer protected by a lease.
        """
        assert sys.platform == "linux"
        import tempfile  # a search has no use for it

        try:
            try:
                with tempfile.TemporaryFile(dir=self._path.parent) as copy:
                    # a mapping stays valid after its descriptor is closed
                    self._map(copy.fileno())
            except OSError:
                copied = os.memfd_create("segment")
                try:
                    self._map(copied)
                finally:
                    os.close(copied)
        except OSError:
            self.leased = False
        fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def _map(self, copy: int) -> None:
        """Copy the file and map the copy at the address of the mapping, in one step that readers do not notice."""
        import ctypes

        done, size = 0, len(self)
        # sendfile copies within the kernel, and may copy less than it was given
        while done < size:
            count = os.sendfile(copy, self._descriptor, done, size - done)
            if not count:
                raise OSError("the file was cut short")
            done += count
        if _state(self._descriptor)[:2] != self._opened[:2]:  # the lease timed out while copying
            raise OSError("the file was changed")
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
        # MAP_FIXED replaces the pages in place: arrays keep their addresses and now read the copy.
        address = np.frombuffer(self, np.uint8).ctypes.data
        if system.mmap(address, size, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, copy, 0) != address:
            raise OSError(ctypes.get_errno(), "the copy cannot be mapped")

    def _is_untouched(self) -> bool:
        """Whether the metadata is unchanged. An unlinked file cannot be reopened; its ctime is that of unlink."""
        return not os.fstat(self._descriptor).st_nlink or _state(self._descriptor) == self._opened


class _LeaseWatcher:
    """Polls the leases of all mappings of this process, in a thread that ends when there are none."""

    def __init__(self) -> None:
        self._mappings: weakref.WeakSet[StableMapping] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, mapping: StableMapping) -> None:
        with self._guard:
            self._mappings.add(mapping)
            if self._thread is None or not self._thread.is_alive():  # a forked child does not inherit threads
                self._thread = threading.Thread(target=self._run, name="segment-leases", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(POLL_SECONDS)
            with self._guard:
                if not self._mappings:
                    self._thread = None
                    return
                # Copy outside the guard: new segments can be opened meanwhile.
                wanted = [mapping for mapping in self._mappings if mapping.is_wanted()]
                self._mappings.difference_update(wanted)
            # `pop` drops the strong reference, so that an unused mapping can be freed.
            while wanted:
                wanted.pop().part()


_watcher = _LeaseWatcher()


def stable(file: BinaryIO, path: Path) -> StableMapping | memoryview:
    """The bytes of an open, non-empty file: mapped, or copied into memory. Raises OSError."""
    leased = _lease(file.fileno(), path)
    if not leased and os.fstat(file.fileno()).st_size <= MAX_COPIED:
        return _copied(file)
    mapping = StableMapping.of(file, path)
    if leased:
        mapping.leased = True
        _watcher.add(mapping)
    return mapping


def _lease(descriptor: int, path: Path) -> bool:
    """Take a read lease. False where leases do not work: on other systems, on file systems shared between machines, for
    a file of another account, and while a program has the file open for writing."""
    if sys.platform != "linux" or not file_system_of(path).shares_memory:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored by default, unlike SIGIO, which kills
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return False
    return True


def _copied(file: BinaryIO) -> memoryview:
    """The contents of a file, in anonymous memory."""
    pages = memoryview(mmap.mmap(-1, os.fstat(file.fileno()).st_size))
    file.seek(0)
    return pages[: file.readinto(pages)].toreadonly()  # type: ignore[attr-defined]


def _state(descriptor: int) -> tuple[int, ...]:
    """Size, modification time, and change time, which programs cannot set."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
