"""Whether a file may be a store, told without SQLite: a server looks before it loads anything (feature T27)."""

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
from speckit_memory.errors.names import shown

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
"""The same as earlier versions wrote it."""
IGNORED = f"""\
{IGNORED_BEFORE}# Editors check pipeline.yaml by this one.
!pipeline.schema.json
"""
"""What the folder of the stores tells Git. Whatever is added to it later is left out without a further line."""

FOR_THE_OWNER = 0o600
"""A store holds what files hold that only their owner may read. SQLite gives its log and index the same mode."""
FOLDER_FOR_THE_OWNER = 0o700

LOGS_KEPT = 3
"""So many logs of earlier files stay beside a store: nobody looks further back."""

_HEADER = b"SQLite format 3\0"


def start_of(path: Path) -> bytes:
    """The first bytes of a file that SQLite of this process does not have open: closing it gives up SQLite's locks."""
    with path.open("rb") as file:
        return file.read(len(_HEADER))


def store_is_there(path: Path) -> bool:
    """Whether there is anything at a store's path. Raises E020 for a path that nothing can be at."""
    return _stat(path) is not None


def require_file(
    path: Path, create: bool, start_of: Callable[[Path], bytes] = start_of, *, writable: bool = True
) -> None:
    """Refuses what is not a store by looking at the file alone, so that no foreign file is ever touched.

    Makes the folder of a new file if `create` allows one; `start_of` reads the first 16 bytes of a file. One that may
    only be read is refused if it must be `writable`. Raises E010, E011, E014, E020 and E024.
    """
    if shown(str(path)) != str(path):
        hint = "SQLite opens files whose whole path is UTF-8."
        actions = (f"name another place with --db or {DB_VARIABLE}", "rename the folder")
        raise SpeckitError("E014", f"{path} cannot be a store: the path is not UTF-8", hint=hint, actions=actions)
    found = _stat(path)
    if found is None:
        if not create:
            raise SpeckitError("E010", f"there is no store at {path}", actions=("run `speckit-memory index PATH`",))
        make_folder(path.parent)
        return
    if stat.S_ISDIR(found.st_mode):
        raise SpeckitError("E014", f"{path} is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
        raise SpeckitError("E014", f"{path} is no regular file", hint="A store is a file on a disk.")
    if not _may(path, os.R_OK):
        raise SpeckitError("E011", f"{path} may not be read")
    if writable and not _may(path, os.W_OK):
        raise only_read(path)
    try:
        start = start_of(path)
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be read: {error.strerror}") from error
    if start != _HEADER and (start or not create):
        raise SpeckitError("E024", f"{path} is not a SQLite file" if start else f"{path} is empty")


def may_only_be_read(path: Path) -> bool:
    """Whether there is a store that nothing can be written to: its file is protected, or its folder is and the files
    that SQLite writes to first are not there."""
    real = _resolved(path)
    if not _may(real, os.W_OK):
        return real.exists()
    return not _may(real.parent, os.W_OK | os.X_OK) and not all(_may(file, os.W_OK) for file in _sidecars(real))


def without_log(path: Path) -> bool:
    """Whether all of a store is in its file, and no process that writes has it open."""
    return not any(os.path.lexists(file) for file in _sidecars(_resolved(path)))


def only_read(path: Path) -> SpeckitError:
    """E020: somebody would write to what may only be read."""
    hint = "What is stored can be searched; nothing can be saved, indexed or counted."
    return SpeckitError(
        "E020", f"{path} may only be read", hint=hint, actions=("make the file and its folder writable",)
    )


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def make_file(path: Path) -> None:
    """Makes the empty file of a new store, which only its owner may read; one that is there is left as it is.

    A log that lies where the new one's will be is of a file that was there before, and that a server may still have
    open: SQLite would take it for the new one's, so that it is set aside. Raises E020.
    """
    real = _resolved(path)  # a link that leads nowhere yet is followed, as SQLite does
    try:
        if any(os.path.lexists(file) for file in _sidecars(real)):
            with _alone_in(real.parent):
                if not os.path.lexists(real):
                    set_aside(_sidecars(real))
        os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, FOR_THE_OWNER))
    except FileExistsError:
        return
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be created: {error.strerror}") from error


def _sidecars(path: Path) -> list[Path]:
    """What SQLite keeps beside an open file: its write-ahead log, and the index of that."""
    return [path.with_name(f"{path.name}-{part}") for part in ("wal", "shm")]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lets one process after the other set aside what lies in the folder: nobody makes a store there meanwhile, whose
    log could be taken for an older one. Windows does not let go of the name of an open file and needs none of it.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems lock nothing
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def set_aside(files: Sequence[Path]) -> None:
    """Takes files away that must not be taken for part of the store beside them.

    A log is renamed, as its changes may be in no other file; the latest few of such logs stay. An empty log, and the
    index of a log, which SQLite makes anew, tell of nothing.
    """
    for file in files:
        with suppress(OSError):
            found = file.stat()
            if file.name.endswith("-wal") and found.st_size:
                file.rename(f"{file}.of-{found.st_ino}")
            else:
                file.unlink()
        with suppress(OSError):
            aside = sorted(file.parent.glob(f"{glob.escape(file.name)}.of-*"), key=lambda one: one.stat().st_mtime_ns)
            for earlier in aside[:-LOGS_KEPT] if file.name.endswith("-wal") else aside:
                earlier.unlink()


def keep_out_of_git(folder: Path) -> bool:
    """Gives a folder `.speckit` a `.gitignore` unless it has one; returns whether it was written. Raises E020.

    Where a link leads out of the workspace lies a folder of another kind, all of whose files Git would leave out.
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
        raise SpeckitError("E020", f"{path} cannot be looked at: {reason}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it. The product's own is for its owner alone; others are as the umask says.

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
