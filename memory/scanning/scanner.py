"""Which files are there, and what has to be done with each (feature I8)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EACCES, EFBIG, ENOENT, EPERM
from pathlib import Path
from stat import S_ISREG

from speckit_memory.config.files.paths import is_folder
from speckit_memory.config.workspace.workspace_file import SourcePatterns
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.names import shown
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.parsing.keys import with_folders
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.ignore_files import IgnoreFiles
from speckit_memory.memory.scanning.metadata_file import changed_ns
from speckit_memory.memory.scanning.selection import Selection, reason_to_leave_out
from speckit_memory.memory.store.reading.reader import KnownFile

FORBIDDEN_FOLDERS = frozenset({".git", ".speckit"})
"""What they hold is written by programs, and changes while it is read."""
LARGEST_FILE = 10_000_000
"""Bytes."""

NO_PATTERNS = SourcePatterns()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file below the root. `key` is its path relative to the root, with "/"; `mtime_ns` and `ctime_ns` what the scan
    saw, the latter with that of the file that describes it added: it differs once either has changed, or that is gone.
    """

    key: str
    root: Path
    mtime_ns: int
    ctime_ns: int = 0

    @property
    def path(self) -> Path:
        """Where it was found."""
        return self.root / self.key

    def read(self) -> tuple[str, int]:
        """Its text, and the time of modification of what was read.

        Raises E010 to E014: meanwhile it may have gone, or something else may have taken its place.
        """
        try:
            content = inside.read(self.root, self.key, LARGEST_FILE)
        except OSError as error:
            raise _os_error(self.key, error) from error
        return decode(content.data, self.key), content.mtime_ns


@dataclass(slots=True)
class Scan:
    """What was found below the paths given, by key.

    `covered` are the keys of those paths: only what lies below them can be gone. `missing` are those of them that do
    not exist. `hidden` are files and folders that could not be looked at: what is there is unknown, not gone. `links`
    are pairs of keys that lead to one file, the first one taken. `ignored` says why documents and folders (with "/" at
    the end) were left out, `overruled` why the named ones would have been. `remarks` are problems that are no mistake
    of whoever named the paths.
    """

    files: dict[str, FoundFile] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    overruled: dict[str, str] = field(default_factory=dict)
    remarks: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """The six paths: files to read (new, without a stored time, near to it, changed), to skip (same time), and gone.

    Where it departs from the catalogue: docs/decisions/0016-six-paths-of-a-scan.md.
    """

    read: tuple[FoundFile, ...]
    skip: tuple[str, ...]
    gone: tuple[str, ...]


def scan(
    paths: Sequence[Path],
    root: Path,
    patterns: SourcePatterns = NO_PATTERNS,
    remembered: Sequence[str] = (),
) -> Scan:
    """Walks files and folders, relative ones from the root, and what is `remembered` (keys) below them.

    What is given by name is taken: a file whatever its suffix, a folder though it is hidden or ignored. Below it,
    `Selection` decides. Links are followed as long as they stay below the root; one that leaves it is reported (E014),
    and what is stored of it stays. A file or folder that can be reached twice is taken the first time: loops end.
    """
    found = Scan()
    seen: dict[tuple[int, int], str] = {}
    root = Path(os.path.normpath(root.absolute()))
    if not is_folder(root):  # an unmounted disk, a renamed project: what is stored of it is not gone
        problem = Problem("E010", f"the workspace {root} is no folder any more", actions=("bring it back",))
        return Scan(problems=[problem])
    for given in paths:
        path = Path(os.path.normpath(root / given))
        if not path.is_relative_to(root):
            message = f"{path} lies outside the workspace {root}"
            found.problems.append(Problem("E014", message, "Keys are paths relative to the workspace root."))
            continue
        key = path.relative_to(root).as_posix()
        if forbidden := FORBIDDEN_FOLDERS & set(path.relative_to(root).parts):
            hint = "What programs keep there is no document."
            found.problems.append(Problem("E014", f"{key}: nothing in '{min(forbidden)}' is indexed", hint))
            continue
        found.covered.append("" if key == "." else key)
        if not _enter(path, root, patterns, found, seen, found.problems):
            found.missing.append(key)
        elif reason := _left_out(path, root, patterns):
            found.overruled[key] = reason
    covered = frozenset(found.covered)
    for key in sorted(set(remembered) - covered):
        if below_any(key, covered):
            _enter(root / key, root, patterns, found, seen, found.remarks)
    for key in (*found.covered, *remembered):  # left out on the way from above, and taken by name
        found.ignored.pop(key, None)
        found.ignored.pop(f"{key}/", None)
    return found


def decide(
    found: Scan,
    known: Mapping[str, KnownFile],
    force: bool = False,
    elsewhere: Callable[[str], bool] = lambda _key: False,
) -> Decision:
    """What to do with each file, given what is stored.

    A file whose times of modification and of change are the stored ones is skipped: the second one tells an edit after
    which the first was set back. Any other time, however near, means reading it; equal content then decides. What never
    came from a file cannot be gone, and what another root has is there `elsewhere`.
    """
    read: list[FoundFile] = []
    skip: list[str] = []
    for key, file in sorted(found.files.items()):
        stored = known.get(key)
        same = stored is not None and (stored.mtime_ns, stored.ctime_ns) == (file.mtime_ns, file.ctime_ns)
        if same and not force:
            skip.append(key)
        else:
            read.append(file)
    covered, hidden = frozenset(found.covered), frozenset(found.hidden)
    gone = tuple(
        key
        for key, stored in known.items()
        if stored.mtime_ns is not None
        and key not in found.files
        and below_any(key, covered)
        and not below_any(key, hidden)
        and not elsewhere(key)
    )
    return Decision(tuple(read), tuple(skip), gone)


def _enter(
    path: Path,
    root: Path,
    patterns: SourcePatterns,
    found: Scan,
    seen: dict[tuple[int, int], str],
    problems: list[Problem],
) -> bool:
    """Takes one source, `problems` telling whose mistake a link is that leaves the root. False when it is not there."""
    try:
        if _leaves(path, root, found, problems):
            return True
        if path.is_dir():
            _walk(Selection.below(path, root, patterns), found, seen)
        else:
            _add(path, root, found, seen, path.stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        _hide(path.relative_to(root).as_posix(), error, found)
    return True


def _left_out(path: Path, root: Path, patterns: SourcePatterns) -> str:
    try:
        return reason_to_leave_out(path, root, patterns)
    except OSError:  # what is on the way may not be looked at; entering it has said so
        return ""


def _walk(selection: Selection, found: Scan, seen: dict[tuple[int, int], str]) -> None:
    root = selection.root
    waiting = [(selection.folder, selection.ignore_files(found.remarks))]
    # Links come last: a file is known by the place where it lies, wherever else links to it are.
    linked: deque[tuple[Path, IgnoreFiles, bool]] = deque()
    while waiting or linked:
        if not waiting:
            path, ignores, is_folder = linked.popleft()
            if is_folder:
                waiting.append((path, ignores))
            else:
                _add_linked(path, root, found, seen)
            continue
        folder, above = waiting.pop()
        key = folder.relative_to(root).as_posix()
        try:
            with inside.folder(root, key) as descriptor:
                state = os.fstat(descriptor)
                if (state.st_dev, state.st_ino) in seen:
                    continue
                seen[state.st_dev, state.st_ino] = key
                ignores = above.inside(folder, found.remarks)
                with os.scandir(descriptor if os.scandir in os.supports_fd else folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
                waiting += reversed(_folders(folder, entries, selection, ignores, found, seen, linked))
        except FileNotFoundError:  # it was deleted a moment ago
            continue
        except OSError as error:
            _hide(key, error, found)


def _folders(
    folder: Path,
    entries: Sequence[os.DirEntry[str]],
    selection: Selection,
    ignores: IgnoreFiles,
    found: Scan,
    seen: dict[tuple[int, int], str],
    linked: deque[tuple[Path, IgnoreFiles, bool]],
) -> list[tuple[Path, IgnoreFiles]]:
    """Takes the files among the entries of a folder, and puts links aside. Returns the folders to enter."""
    root, folders = selection.root, []
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder = entry.is_dir()
            reason = selection.leaves_out(path, is_folder, ignores)
            if reason is not None:
                if reason:
                    found.ignored[path.relative_to(root).as_posix() + "/" * is_folder] = reason
            elif entry.is_symlink() and _leaves(path, root, found, found.remarks):
                continue
            elif entry.is_symlink():
                entry.stat()  # raises for a link that leads nowhere
                linked.append((path, ignores, is_folder))
            elif is_folder:
                folders.append((path, ignores))
            else:
                _add(path, root, found, seen, entry.stat())
        except FileNotFoundError:
            if entry.is_symlink():  # else it was deleted a moment ago
                message = f"{path.relative_to(root).as_posix()}: the link leads nowhere"
                found.remarks.append(Problem("E010", message, actions=("remove the link",)))
        except OSError as error:
            _hide(path.relative_to(root).as_posix(), error, found, found.remarks if entry.is_symlink() else None)
    return folders


def _add_linked(path: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str]) -> None:
    """The same for the file that a link leads to, which may have gone in the meantime."""
    with suppress(FileNotFoundError):
        try:
            _add(path, root, found, seen, path.stat())
        except OSError as error:
            _hide(path.relative_to(root).as_posix(), error, found, found.remarks)


def _add(path: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str], state: os.stat_result) -> None:
    key = path.relative_to(root).as_posix()
    if shown(key) != key:
        _note_name(key, found)
        return
    if not S_ISREG(state.st_mode):  # opening a named pipe waits for somebody who writes to it
        hint = "Documents are regular files; pipes, sockets and devices are not read."
        found.problems.append(Problem("E014", f"{key}: not a regular file", hint))
        found.hidden.append(key)
        return
    first = seen.setdefault((state.st_dev, state.st_ino), key)
    if first == key:
        found.files[key] = FoundFile(key, root, state.st_mtime_ns, state.st_ctime_ns + changed_ns(path))
    else:
        found.links.append((first, key))


def _note_name(key: str, found: Scan) -> None:
    """Tells of a name that cannot be a key: a mistake, unless it is the locale alone that cannot spell it."""
    try:
        spelled = os.fsencode(key).decode()
    except UnicodeError:
        found.problems.append(Problem("E014", f"{key}: the name is not UTF-8", "Rename the file."))
        return
    hint = "The file is left out, and its memory is absent, while names are read in this locale."
    message = f"{spelled}: the locale cannot spell the name"
    found.remarks.append(Problem("E014", message, hint, ("set LC_ALL=C.UTF-8",)))


def _leaves(path: Path, root: Path, found: Scan, problems: list[Problem]) -> bool:
    """Whether a link on the way leads out of the root; if so, it is added to the problems and hidden."""
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return False
    key = path.relative_to(root).as_posix()
    hint = "Links are followed inside the workspace only: copy the file, or choose a root that holds both."
    problems.append(Problem("E014", f"{key}: {inside.LEADS_OUT}", hint))
    found.hidden.append(key)
    return True


def _hide(key: str, error: OSError, found: Scan, problems: list[Problem] | None = None) -> None:
    (found.problems if problems is None else problems).extend(_os_error(key, error).problems)
    if not isinstance(error, FileNotFoundError):
        found.hidden.append(key)


def below(key: str, folder: str) -> bool:
    """Whether a key is that of a folder, or of what it holds; "" is the root."""
    return not folder or key == folder or key.startswith(f"{folder}/")


def below_any(key: str, folders: Set[str]) -> bool:
    """The same for any of several folders, in a time that their number makes no longer."""
    return any(each in folders for each in with_folders(key))


def _os_error(key: str, error: OSError) -> SpeckitError:
    code = {ENOENT: "E010", EACCES: "E011", EPERM: "E011", EFBIG: "E013"}.get(error.errno or 0, "E014")
    return SpeckitError(code, f"{key}: {(error.strerror or str(error)).lower()}")
