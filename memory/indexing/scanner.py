"""Which files are there, and what has to be done with each (feature I8)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from config.errors import Problem, SpeckitError
from memory.indexing.encoding import decode
from memory.store.reader import KnownFile

SUFFIXES = frozenset({".md", ".markdown", ".txt"})
SKIPPED_FOLDERS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "target", "venv"})
"""Passed over beside hidden folders: none of them holds what somebody wrote."""
LARGEST_FILE = 10_000_000
"""Bytes."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")  # how Python shows bytes of a name that are not UTF-8


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file below the paths given. `key` is its path relative to the root, with "/"."""

    key: str
    path: Path
    mtime_ns: int

    def read(self) -> str:
        """Its text. Raises E010, E011, E012 or E013."""
        try:
            size = self.path.stat().st_size
            if size > LARGEST_FILE:
                raise SpeckitError("E013", f"{self.key}: {size} bytes, at most {LARGEST_FILE} are read")
            return decode(self.path.read_bytes(), self.key)
        except OSError as error:
            raise _os_error(self.key, error) from error


@dataclass(slots=True)
class Scan:
    """What was found below the paths given, by key.

    `covered` are the keys of those paths: only what lies below them can be gone. `missing` are those of them that do
    not exist. `hidden` are files and folders that could not be looked at: what is there is unknown, not gone. `links`
    are pairs of keys that lead to one file, the first one taken.
    """

    files: dict[str, FoundFile] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """The six paths: files to read (new, without a stored time, changed, pending or failed), to skip, and gone."""

    read: tuple[FoundFile, ...]
    skip: tuple[str, ...]
    gone: tuple[str, ...]


def scan(paths: Sequence[Path], root: Path) -> Scan:
    """Walks files and folders, relative ones from the root. Files given by name are taken whatever their suffix.

    Links are followed as long as they stay below the root; one that leaves it is reported (E014), and what is stored
    of it stays. A file or folder that can be reached twice is taken the first time, so that loops end.
    """
    found = Scan()
    seen: dict[tuple[int, int], str] = {}
    root = Path(os.path.normpath(root.absolute()))
    for given in paths:
        path = Path(os.path.normpath(root / given))
        if not path.is_relative_to(root):
            message = f"{path} lies outside the workspace {root}"
            found.problems.append(Problem("E014", message, "Keys are paths relative to the workspace root."))
            continue
        key = path.relative_to(root).as_posix()
        found.covered.append("" if key == "." else key)
        try:
            if _leaves(path, root, found):
                continue
            if path.is_dir():
                _walk(path, root, found, seen)
            else:
                _add(path, root, found, seen, path.stat())
        except FileNotFoundError:
            found.missing.append(key)
        except OSError as error:
            _hide(key, error, found)
    return found


def decide(found: Scan, known: Mapping[str, KnownFile], force: bool = False) -> Decision:
    """What to do with each file, given what is stored.

    A file with the stored time of modification is skipped. Any other time, however near, means reading it; equal
    content then decides. What never came from a file cannot be gone.
    """
    read: list[FoundFile] = []
    skip: list[str] = []
    for key, file in sorted(found.files.items()):
        stored = known.get(key)
        same = stored is not None and stored.mtime_ns == file.mtime_ns
        if same and not force:
            skip.append(key)
        else:
            read.append(file)
    gone = tuple(
        key
        for key, stored in known.items()
        if stored.mtime_ns is not None
        and key not in found.files
        and any(below(key, folder) for folder in found.covered)
        and not any(below(key, folder) for folder in found.hidden)
    )
    return Decision(tuple(read), tuple(skip), gone)


def _walk(top: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str]) -> None:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        key = folder.relative_to(root).as_posix()
        try:
            state = folder.stat()
            if (state.st_dev, state.st_ino) in seen:
                continue
            seen[state.st_dev, state.st_ino] = key
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            _hide(key, error, found)
            continue
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = folder / entry.name
            try:
                is_folder = entry.is_dir()
                if is_folder and entry.name in SKIPPED_FOLDERS:
                    continue
                if not is_folder and PurePosixPath(entry.name).suffix.lower() not in SUFFIXES:
                    continue
                if entry.is_symlink() and _leaves(path, root, found):
                    continue
                if is_folder:
                    folders.append(path)
                else:
                    _add(path, root, found, seen, entry.stat())
            except OSError as error:
                _hide(path.relative_to(root).as_posix(), error, found)
        waiting += reversed(folders)


def _add(path: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str], state: os.stat_result) -> None:
    key = path.relative_to(root).as_posix()
    if _SURROGATE.search(key):
        shown = key.encode(errors="replace").decode()
        found.problems.append(Problem("E014", f"{shown}: the name is not UTF-8", "Rename the file."))
        return
    if not S_ISREG(state.st_mode):  # opening a named pipe waits for somebody who writes to it
        hint = "Documents are regular files; pipes, sockets and devices are not read."
        found.problems.append(Problem("E014", f"{key}: not a regular file", hint))
        return
    first = seen.setdefault((state.st_dev, state.st_ino), key)
    if first == key:
        found.files[key] = FoundFile(key, path, state.st_mtime_ns)
    else:
        found.links.append((first, key))


def _leaves(path: Path, root: Path, found: Scan) -> bool:
    """Whether a link on the way leads out of the root; if so, it is reported and hidden."""
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return False
    key = path.relative_to(root).as_posix()
    hint = "Links are followed inside the workspace only: copy the file, or choose a root that holds both."
    message = f"{key.encode(errors='replace').decode()}: the link leads out of the workspace"
    found.problems.append(Problem("E014", message, hint))
    found.hidden.append(key)
    return True


def _hide(key: str, error: OSError, found: Scan) -> None:
    found.problems += _os_error(key, error).problems
    if not isinstance(error, FileNotFoundError):
        found.hidden.append(key)


def below(key: str, folder: str) -> bool:
    """Whether a key is that of the folder, or of something in it; everything is below ""."""
    return not folder or key == folder or key.startswith(f"{folder}/")


def _os_error(key: str, error: OSError) -> SpeckitError:
    code = {FileNotFoundError: "E010", PermissionError: "E011"}.get(type(error), "E014")
    return SpeckitError(code, f"{key}: {(error.strerror or str(error)).lower()}")
