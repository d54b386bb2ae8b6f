"""Checks without SQLite whether a file may be a store: a server runs them before it loads anything (feature T27)."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from speckit_memory.config.workspace.settings import DB_VARIABLE, FOLDER
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.names import displayable_name

if sys.platform != "win32":
    import fcntl

IGNORED_BEFORE = """\
# What speckit-memory keeps here is made from your files: leave it out of version control.
*
# These are written by people.
!.gitignore
!config.yaml
!flags.yaml
!pipeline.yaml
"""
"""The text of `IGNORED` in earlier versions."""
IGNORED = f"""\
{IGNORED_BEFORE}# Editors check pipeline.yaml by this one.
!pipeline.schema.json
"""
"""The `.gitignore` of the stores' folder. Files added to the folder later are ignored without a further line."""

FOR_THE_OWNER = 0o600
"""Mode of a store: it holds the texts of files that may be private. SQLite gives its log and index the same mode."""
FOLDER_FOR_THE_OWNER = 0o700

UNFINISHED = ".unfinished"
"""Ending of the name of a copy until it is complete."""
LOGS_KEPT = 3
"""Number of logs of earlier files that are kept next to a store."""

_HEADER = b"SQLite format 3\0"


def start_of(path: Path) -> bytes:
    """The first bytes of a file that this process has not open through SQLite: closing it would release those locks."""
    with path.open("rb") as file:
        return file.read(len(_HEADER))


def store_is_there(path: Path) -> bool:
    """Whether a file or folder exists at a store's path. Raises E020 for an impossible path."""
    return _stat(path) is not None


def unfinished_file(path: Path) -> Path:
    """The file that a copy fills before it gets this path."""
    return path.with_name(f"{path.name}{UNFINISHED}")


def unfinished_copy(name: str) -> SpeckitError:
    """E020 for a store that a copy has not finished."""
    return SpeckitError(
        "E020",
        f"{name} is a copy of a store that is not finished",
        hint="It was interrupted, or still runs. Nothing of it is served.",
        actions=("run `speckit-memory store copy FROM TO` again: it continues where it ended",),
    )


def require_file(
    path: Path, create: bool, start_of: Callable[[Path], bytes] = start_of, *, writable: bool = True
) -> None:
    """Refuses a path that holds no store, by looking at the file alone, so that no foreign file is ever changed.

    Args:
        path: The path of the store.
        create: Whether the file may be missing; its folder is then made.
        start_of: Reads the first 16 bytes of a file.
        writable: Whether a read-only file is refused.

    Raises:
        SpeckitError: E010 (missing), E011 (not readable), E014 (no regular file, or a path that is not UTF-8), E020
            (read-only or unreadable) or E024 (no store).
    """
    if displayable_name(str(path)) != str(path):
        hint = "SQLite opens files whose whole path is UTF-8."
        actions = (f"name another place with --db or {DB_VARIABLE}", "rename the folder")
        raise SpeckitError("E014", f"{path} cannot be a store: the path is not UTF-8", hint=hint, actions=actions)
    found = _stat(path)
    if found is None:
        if unfinished_file(path).exists():
            raise unfinished_copy(str(path))
        if not create:
            raise SpeckitError("E010", f"there is no store at {path}", actions=("run `speckit-memory index PATH`",))
        make_folder(path.parent)
        return
    if stat.S_ISDIR(found.st_mode):
        raise SpeckitError("E014", f"{path} is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
        raise SpeckitError("E014", f"{path} is not a regular file", hint="A store is a file on a disk.")
    if not _may(path, os.R_OK):
        raise SpeckitError("E011", f"{path} is not readable")
    if writable and not _may(path, os.W_OK):
        raise only_read(path)
    try:
        start = start_of(path)
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be read: {error.strerror}") from error
    if start != _HEADER and (start or not create):
        hint = f"If it never was a store, leave it as it is: --db or {DB_VARIABLE} names the wrong file."
        raise SpeckitError("E024", f"{path} is not a SQLite file" if start else f"{path} is empty", hint=hint)


def may_only_be_read(path: Path) -> bool:
    """Whether a store exists that cannot be written to: its file is read-only, or its folder is and the log and index
    that SQLite would have to create are missing."""
    real = _resolved(path)
    if not _may(real, os.W_OK):
        return real.exists()
    return not _may(real.parent, os.W_OK | os.X_OK) and not all(_may(file, os.W_OK) for file in _sidecars(real))


def without_log(path: Path) -> bool:
    """Whether a store has no log and index: all of it is in its file, and no writing process has it open."""
    return not any(os.path.lexists(file) for file in _sidecars(_resolved(path)))


def only_read(path: Path) -> SpeckitError:
    """E020: an attempt to write to a read-only store."""
    hint = "Stored memories can be searched, but nothing can be saved, indexed or counted."
    return SpeckitError("E020", f"{path} is read-only", hint=hint, actions=("make the file and its folder writable",))


def _may(path: Path, mode: int) -> bool:
    # effective ids where supported: those with which the file will be opened
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def make_file(path: Path) -> None:
    """Makes the empty file of a new store, readable by its owner only; an existing file is left unchanged.

    A log at the new store's log path belongs to an earlier file, which a server may still have open. SQLite would
    apply it to the new file, so it is set aside. Raises E020.
    """
    real = _resolved(path)  # a link without a target is followed, as SQLite does
    try:
        if any(os.path.lexists(file) for file in _sidecars(real)):
            # Checked again under the lock: another process may have made the store, and the log would be its own.
            with _alone_in(real.parent):
                if not os.path.lexists(real):
                    set_aside(_sidecars(real))
        os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, FOR_THE_OWNER))
    except FileExistsError:
        return
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be created: {error.strerror}") from error


def _sidecars(path: Path) -> list[Path]:
    """The files that SQLite keeps next to an open database: its write-ahead log and the log's index."""
    return [path.with_name(f"{path.name}-{part}") for part in ("wal", "shm")]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Locks a folder while old logs in it are set aside, so that no other process creates a store there whose log could
    be taken for an old one. Windows needs no lock, since open files cannot be renamed there.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def set_aside(files: Sequence[Path]) -> None:
    """Removes files that SQLite would take for part of the store next to them.

    A log is renamed, as its changes may be in no other file; the latest `LOGS_KEPT` such logs are kept. An empty log,
    and a log's index, which SQLite rebuilds, are deleted.
    """
    for file in files:
        with suppress(OSError):
            found = file.stat()
            if file.name.endswith("-wal") and found.st_size:
                # named by its inode, so that logs of several earlier files can be kept
                file.rename(f"{file}.of-{found.st_ino}")
            else:
                file.unlink()
        with suppress(OSError):
            aside = sorted(file.parent.glob(f"{glob.escape(file.name)}.of-*"), key=lambda one: one.stat().st_mtime_ns)
            for earlier in aside[:-LOGS_KEPT] if file.name.endswith("-wal") else aside:
                earlier.unlink()


def keep_out_of_git(folder: Path) -> bool:
    """Gives a folder `.speckit` a `.gitignore` unless it has one; returns whether it was written. Raises E020.

    A `.speckit` that is a link out of the workspace gets none: Git would ignore all files of the folder it points to.
    """
    if folder.name != FOLDER or not _resolved(folder).is_relative_to(_resolved(folder.parent)):
        return False
    try:
        with (folder / ".gitignore").open("x", encoding="utf-8") as file:
            file.write(IGNORED)
    except FileExistsError:
        return False
    except OSError as error:
        raise SpeckitError("E020", f"{folder / '.gitignore'} could not be written: {error.strerror}") from error
    return True


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise SpeckitError("E020", f"{path} cannot be made: a part of its path is a file, not a folder") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpeckitError("E020", f"{path} cannot be inspected: {reason}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents. `.speckit` is accessible to its owner only; the umask decides on others.

    Raises E020.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(FOLDER_FOR_THE_OWNER if folder.name == FOLDER else 0o777)
        if not folder.is_dir():
            raise NotADirectoryError(20, "it is a file, not a folder")
    except OSError as error:
        raise SpeckitError("E020", f"the folder {folder} could not be created: {error.strerror}") from error
