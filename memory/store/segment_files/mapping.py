"""Maps a file so that its bytes stay what they were when it was opened, whatever is written to the file meanwhile.

A program that cuts a mapped file short ends every process that reads beyond the new end (SIGBUS), and one that writes
into it changes what these processes read. There are three means; the first that is possible is used:

- A read lease (Linux, local file systems). The kernel holds up any program that opens the file to write to it or cuts
  it, for `/proc/sys/fs/lease-break-time` (45) seconds at most. Meanwhile a thread puts a private copy in the place of
  the mapping and gives the lease up. It costs nothing while nobody writes.
- A copy in memory of a file of up to `MAX_COPIED` bytes.
- A plain mapping of a larger one. `unchanged`, asked before each search, compares what the file system says of the
  file. A file that is cut while a search reads it still ends the process.
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
"""Bytes. Copying so many takes 45 ms of a processor, and each process has a copy of its own."""
POLL_SECONDS = 0.2
"""How often leases are looked at: a program that writes to the file waits so long at most, beside the copying."""

_MAP_FIXED = 0x10


class StableMapping(mmap.mmap):
    """A read-only mapping of a whole file. It lives as long as an array that views it."""

    _path: Path
    _descriptor: int
    _opened: tuple[int, ...]
    leased = False
    """Whether the file, or a private copy of it by now, cannot change."""

    @classmethod
    def of(cls, file: BinaryIO, path: Path) -> StableMapping:
        """The file at this path, which is open and not empty. Raises OSError."""
        mapping = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapping._path = path
        mapping._descriptor = os.dup(file.fileno())
        weakref.finalize(mapping, os.close, mapping._descriptor).atexit = False
        mapping._opened = _state(mapping._descriptor)
        return mapping

    def unchanged(self) -> bool:
        """Whether the bytes are those of the file as it was opened, as far as that can be told without reading them."""
        return self.leased or self._is_untouched()

    def is_wanted(self) -> bool:
        """Whether a program waits to write to the file."""
        assert sys.platform == "linux"
        return fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def part(self) -> None:
        """Replaces the mapping of the file by one of a private copy, and gives the lease up.

        The copy is a file without a name in the same folder, or in memory where none can be written there. Without
        room for either, the mapping is one without a lease from then on.
        """
        assert sys.platform == "linux"
        import tempfile  # a search has no use for it

        try:
            try:
                with tempfile.TemporaryFile(dir=self._path.parent) as copy:
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
        """Copies the file and maps the copy at the address of the mapping, in one step that no reader notices."""
        import ctypes

        done, size = 0, len(self)
        while done < size:
            count = os.sendfile(copy, self._descriptor, done, size - done)
            if not count:
                raise OSError("the file was cut short")
            done += count
        if _state(self._descriptor)[:2] != self._opened[:2]:  # the kernel did not wait any longer
            raise OSError("the file was changed")
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
        address = np.frombuffer(self, np.uint8).ctypes.data
        if system.mmap(address, size, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, copy, 0) != address:
            raise OSError(ctypes.get_errno(), "the copy cannot be mapped")

    def _is_untouched(self) -> bool:
        """A file without a name cannot be opened, and its time of change is that of its removal."""
        return not os.fstat(self._descriptor).st_nlink or _state(self._descriptor) == self._opened


class _LeaseWatcher:
    """Looks at the leases of all mappings of this process, in a thread that ends when there are none."""

    def __init__(self) -> None:
        self._mappings: weakref.WeakSet[StableMapping] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, mapping: StableMapping) -> None:
        with self._guard:
            self._mappings.add(mapping)
            if self._thread is None or not self._thread.is_alive():  # a forked process has no threads of its parent
                self._thread = threading.Thread(target=self._run, name="segment-leases", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(POLL_SECONDS)
            with self._guard:
                if not self._mappings:
                    self._thread = None
                    return
                wanted = [mapping for mapping in self._mappings if mapping.is_wanted()]
                self._mappings.difference_update(wanted)
            while wanted:
                wanted.pop().part()


_watcher = _LeaseWatcher()


def stable(file: BinaryIO, path: Path) -> StableMapping | memoryview:
    """The bytes of an open file that is not empty: mapped, or copied into memory. Raises OSError."""
    leased = _lease(file.fileno(), path)
    if not leased and os.fstat(file.fileno()).st_size <= MAX_COPIED:
        return _copied(file)
    mapping = StableMapping.of(file, path)
    if leased:
        mapping.leased = True
        _watcher.add(mapping)
    return mapping


def _lease(descriptor: int, path: Path) -> bool:
    """Takes a read lease; False where there is none: on other systems, on file systems to which other machines write,
    for the file of another account, and while a program has it open to write."""
    if sys.platform != "linux" or not file_system_of(path).shares_memory:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # a signal that is ignored; the default ends the process
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return False
    return True


def _copied(file: BinaryIO) -> memoryview:
    """All of a file, in pages of this process alone."""
    pages = memoryview(mmap.mmap(-1, os.fstat(file.fileno()).st_size))
    file.seek(0)
    return pages[: file.readinto(pages)].toreadonly()  # type: ignore[attr-defined]


def _state(descriptor: int) -> tuple[int, ...]:
    """Size, time of the last writing, and time of the last change of any kind, which nobody can set."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
