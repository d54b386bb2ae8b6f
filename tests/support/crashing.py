"""Crashes in this process, at every point: what a process leaves that is killed before its n-th change of a file.

A point is a change below a test's folder: a write, truncation, creation or deletion by SQLite, or a write, creation,
renaming, removal or change of attributes by Python. From the chosen point on the process counts as dead: that change
and all later ones fail, so that no rollback, clean-up or thread alters what a killed process would have left. Syncs
are no points, and are left out: a kill loses nothing that was written.

Points at which the next process finds the same are examined once (`files_state.py`): most are within one transaction.
"""

# ruff: noqa: N802 -- the driver's names
from __future__ import annotations

import _pyio  # type: ignore[import-not-found]
import builtins
import errno
import fcntl
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
from files_state import found_in

PATIENCE = 20
"""Seconds within which the threads of a crashed action must end."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_PATHS = {
    "os.rename": ((0, 2), (1, 3)), "os.link": ((1, 3),), "os.symlink": ((1, 2),), "os.remove": ((0, 1),),
    "os.mkdir": ((0, 2),), "os.rmdir": ((0, 1),), "os.chmod": ((0, 2),), "os.utime": ((0, 3),),
    "os.truncate": ((0, 0),),
}  # fmt: skip
"""By audit event: the places of the paths that it changes among its arguments, each with that of its `dir_fd`."""
_BY_DESCRIPTOR = ("write", "writev", "pwrite", "sendfile", "copy_file_range")
"""Functions of `os` without an audit event. The descriptor that is written to comes first, but for the last one."""


class CrashError(BaseException):
    """Ends the action at the change of a file that it crashes at. Nothing in the product catches it."""


class Crash:
    """A crash before change number `at` of the files below a folder; with 0 there is none."""

    def __init__(self, root: Path, at: int, passed: Callable[[str], object] = str) -> None:
        """`passed` is called with each change before it is made."""
        self.root = os.path.realpath(root)
        self.at = at
        self.passed = passed
        self.operation = ""
        """The change that was not made; empty while none failed."""
        self._passed = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"crash at point {self.at}, {self.operation or 'not reached'}"

    @property
    def reached(self) -> bool:
        """Whether the process counts as dead."""
        return bool(self.operation)

    def covers(self, path: str) -> bool:
        """Whether a path is the folder or lies below it."""
        return path == self.root or path.startswith(self.root + os.sep)

    def count(self, operation: str, path: str) -> bool:
        """Counts one point; True if it is beyond the crash."""
        with self._lock:
            self._passed += 1
            change = f"{operation} {os.path.relpath(path, self.root)}"
            if self._passed == self.at:
                self.operation = change
            self.passed(change)
            return self.reached

    def fail_file(self, operation: str, path: Any, folder: int = -1) -> None:
        """Counts a change by Python, of a path or a descriptor, and raises if the process is dead."""
        if isinstance(path, int):
            name = _path_of(path)
        else:
            name = str(Path(_path_of(folder) if folder >= 0 else Path.cwd(), os.fsdecode(path)))
        if self.covers(name):
            reached = self.reached
            if self.count(operation, name):
                # what unwinds from the crash tolerates an error of the file system, and lets go of its locks
                raise OSError(errno.EIO, repr(self)) if reached else CrashError(repr(self))

    def fail_store(self, operation: str, path: str) -> None:
        """Counts a change by SQLite, and raises what makes it report an I/O error if the process is dead."""
        if self.covers(path) and self.count(operation, path):
            raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)


_crash: Crash | None = None


@contextmanager
def crash_at(root: Path, at: int, passed: Callable[[str], object] = str) -> Iterator[Crash]:
    """Has the process count as dead from change number `at` below a folder to the end of the block.

    The block opens the store itself. What it leaves open is closed here, and its threads have ended, before files can
    be changed again. An exception that follows the crash is swallowed.
    """
    global _crash  # noqa: PLW0603 -- an audit hook cannot be taken away
    _install()
    crash, threads = Crash(root, at, passed), set(threading.enumerate())
    with ExitStack() as replaced:
        for owner, name, function in _replacements(crash):
            replaced.enter_context(patch.object(owner, name, function))
        apsw.set_default_vfs(_NAME)
        _crash = crash
        try:
            try:
                yield crash
            except BaseException:
                if not crash.reached:
                    raise
            _end(crash, threads)
        finally:
            _crash = None
            apsw.set_default_vfs(_BASE)


def every_point(origin: Path, root: Path, action: Callable[[], object]) -> Iterator[Crash]:
    """Crashes an action at its first change of a file, at its second, and so on, each time on a copy of `origin`.

    Yields each crash with what it left at `root`; of those that leave the same, the first. At the end the action has
    run to its end there.
    """

    def crashed(at: int, passed: Callable[[str], object] = str) -> Crash:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(origin, root, symlinks=True)
        with crash_at(root, at, passed) as crash:
            action()
        return crash

    changes, states = [], []

    def note(change: str) -> None:
        changes.append(change.partition(" ")[0])  # names may be made of random numbers
        states.append(found_in(root))

    crashed(0, note)
    for state in dict.fromkeys(states):
        crash = crashed(states.index(state) + 1)
        assert crash.operation.startswith(changes[crash.at - 1]), f"not what it was when it ran to its end: {crash}"
        yield crash
    crashed(0)


def _end(crash: Crash, threads: set[threading.Thread]) -> None:
    """Lets go of all that could change a file later on."""
    for connection in apsw.connections():
        if crash.covers(connection.filename):
            with suppress(apsw.Error):
                connection.close(force=True)
    for thread in set(threading.enumerate()) - threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"{thread.name} goes on after {crash}"
    with Path(os.devnull).open("wb") as nothing:
        for descriptor in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
            with suppress(OSError):  # the one of the listing itself
                if crash.covers(_path_of(descriptor)) and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE:
                    os.dup2(nothing.fileno(), descriptor)


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _replacements(crash: Crash) -> Iterator[tuple[object, str, Callable[..., Any]]]:
    """By owner and name, what counts instead of functions that the interpreter does not audit."""

    def counting(name: str, function: Callable[..., Any], place: int) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            crash.fail_file(name, arguments[place])
            return function(*arguments, **more)

        return call

    def opened(file: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        """A file of Python's own implementation for writing: that one writes by `os.write`."""
        path = _path_of(file) if isinstance(file, int) else str(Path.cwd() / os.fsdecode(file))
        chosen = _pyio.open if set(mode) & set("wxa+") and crash.covers(path) else real
        return chosen(file, mode, *arguments, **more)

    real = open
    yield from ((owner, "open", opened) for owner in (builtins, io))
    for name in _BY_DESCRIPTOR:
        if hasattr(os, name):
            yield os, name, counting(name, getattr(os, name), int(name == "copy_file_range"))
    yield os, "fsync", lambda _: None
    yield sys, "unraisablehook", lambda _: None  # of files that the crash left open


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    if _crash is None:
        return
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        _crash.fail_file(event, arguments[0])
    for place, folder in _PATHS.get(event, ()):
        _crash.fail_file(event, arguments[place], -1 if place == folder else arguments[folder])


_NAME, _BASE = "crashing", str(apsw.vfs_details()[0]["zName"])


class _CrashingFile(apsw.VFSFile):
    def __init__(self, crash: Crash, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(_BASE, name, flags)
        self._crash, self._path = crash, _name_of(name)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._crash.fail_store("xWrite", self._path)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._crash.fail_store("xTruncate", self._path)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        """Nothing: see the module."""


class _CrashingFiles(apsw.VFS):
    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if _crash is None or name is None or not _crash.covers(path := _name_of(name)):
            return super().xOpen(name, flags)
        if flags[0] & apsw.SQLITE_OPEN_CREATE and not Path(path).exists():
            _crash.fail_store("xOpen", path)
        return _CrashingFile(_crash, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if _crash is not None and Path(filename).exists():
            _crash.fail_store("xDelete", filename)
        super().xDelete(filename, syncdir)


def _name_of(name: str | apsw.URIFilename) -> str:
    return name if isinstance(name, str) else name.filename()


@cache
def _install() -> _CrashingFiles:
    """Once for the process; what it returns must live on."""
    sys.addaudithook(_audited)
    return _CrashingFiles(_NAME, _BASE)
