"""Scans a workspace for files and decides what to do with each (feature I8)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EACCES, EFBIG, ENOENT, EPERM
from pathlib import Path
from stat import S_ISREG

from speckit_memory.config.files.paths import is_file, is_folder
from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.config.workspace.private_folders import KeyTest, closed_problem, nothing_closed
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.parsing.keys import with_folders
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.ignore_files import IgnoreFiles
from speckit_memory.memory.scanning.metadata_file import changed_ns
from speckit_memory.memory.scanning.selection import FileSelection, reason_to_leave_out
from speckit_memory.memory.store.reading.reader import KnownFile

FORBIDDEN_FOLDERS = frozenset({".git", ".speckit"})
"""Programs write their content, which changes while it is read."""
LARGEST_FILE = 10_000_000
"""Bytes."""

NO_PATTERNS = SourcePatterns()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file below the root, with its scanned times. `key` is its path relative to the root, with "/". `ctime_ns`
    includes the ctime of its metadata file, so that it differs if either file changes or the latter is deleted."""

    key: str
    root: Path
    mtime_ns: int
    ctime_ns: int = 0

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.root / self.key

    def read(self) -> tuple[str, int]:
        """Return the text, and the modification time in nanoseconds just before reading.

        Raises E010 to E014: since the scan, the file may have been deleted or replaced.
        """
        try:
            content = inside.read(self.root, self.key, LARGEST_FILE)
        except OSError as error:
            raise _os_error(self.key, error) from error
        return decode(content.data, self.key), content.mtime_ns


@dataclass(slots=True)
class Scan:
    """The files found below the given paths, by key.

    `covered` are the keys of these paths: only files below them can be gone. `missing` are those that do not exist.
    `hidden` are files and folders that could not be read: their content is unknown, not gone. `links` are pairs of keys
    of one file, of which the first was taken. `ignored` gives the reasons why documents and folders (with a trailing
    "/") were left out, `overruled` the reasons why named paths would have been. `remarks` are problems that the caller
    did not cause. What is `closed` is neither read nor mentioned, unless it was named.
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
    closed: KeyTest = nothing_closed


@dataclass(frozen=True, slots=True)
class Decision:
    """Files to read (new, without a stored time, with a time near it, or changed), to skip (same time), and gone.

    Differences from the catalogue's six paths: docs/decisions/0016-six-paths-of-a-scan.md.
    """

    read: tuple[FoundFile, ...]
    skip: tuple[str, ...]
    gone: tuple[str, ...]


def scan(
    paths: Sequence[Path],
    root: Path,
    patterns: SourcePatterns = NO_PATTERNS,
    remembered: Sequence[str] = (),
    closed: KeyTest = nothing_closed,
) -> Scan:
    """Walk files and folders.

    A named path is always taken: a file with any suffix, a folder even if hidden or ignored. Below it, `FileSelection`
    decides. Links are followed within the root; one that leaves it is reported (E014), and its memories stay. A file or
    folder reachable twice is taken once, so loops end.

    Args:
        paths: Files and folders, absolute or relative to the root.
        root: The root of the workspace.
        patterns: The include and exclude patterns in force.
        remembered: The keys of earlier sources; those below `paths` count as named too.
        closed: Tells which keys lie in private folders of others.
    """
    found = Scan(closed=closed)
    # (device, inode) to key: recognises files and folders reached twice, also through links.
    seen: dict[tuple[int, int], str] = {}
    root = Path(os.path.normpath(root.absolute()))
    if not is_folder(root):  # an unmounted disk or a renamed project: its memories are not gone
        problem = Problem("E010", f"the workspace {root} is no longer a folder", actions=("restore the folder",))
        return Scan(problems=[problem])
    for given in paths:
        path = Path(os.path.normpath(root / given))
        if not path.is_relative_to(root):
            message = f"{path} lies outside the workspace {root}"
            found.problems.append(Problem("E014", message, "Keys are paths relative to the workspace root."))
            continue
        key = path.relative_to(root).as_posix()
        if forbidden := FORBIDDEN_FOLDERS & set(path.relative_to(root).parts):
            hint = "The files that programs keep there are not documents."
            found.problems.append(Problem("E014", f"{key}: nothing in '{min(forbidden)}' is indexed", hint))
            continue
        if closed(key) or (closed(f"{key}/") and not is_file(path)):
            found.problems.append(closed_problem(key))
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
    for key in (*found.covered, *remembered):  # excluded when walked from above, but taken by name
        found.ignored.pop(key, None)
        found.ignored.pop(f"{key}/", None)
    return found


def decide(
    found: Scan,
    known: Mapping[str, KnownFile],
    force: bool = False,
    elsewhere: Callable[[str], bool] = lambda _key: False,
) -> Decision:
    """Decide which files to read, to skip and to report as gone.

    A file with the stored mtime and ctime is skipped; the ctime reveals an edit after which the mtime was reset. With
    any other time the file is read, and its content decides.

    Args:
        found: The files found.
        known: The files in the store, by key; memories that never had a file cannot be gone.
        force: Read all files.
        elsewhere: Tells whether a key belongs to another root; such files are not gone.
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
    # Gone: below the scanned paths, readable, of this root, and yet not found.
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
    """Scan one source; return False if it does not exist. `problems` receives links that leave the root."""
    try:
        if _leaves(path, root, found, problems):
            return True
        if path.is_dir():
            _walk(FileSelection.below(path, root, patterns), found, seen)
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
    except OSError:  # a parent is inaccessible, which `_enter` has reported
        return ""


def _walk(selection: FileSelection, found: Scan, seen: dict[tuple[int, int], str]) -> None:
    root = selection.root
    # Depth-first with an explicit stack; each folder inherits the ignore files of its parents.
    waiting = [(selection.folder, selection.ignore_files(found.remarks))]
    # Links come last, so that a file's key is its real place even if links to it are found first.
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
                # Listing by descriptor: the folder cannot be replaced by a link between check and listing.
                with os.scandir(descriptor if os.scandir in os.supports_fd else folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
                waiting += reversed(_folders(folder, entries, selection, ignores, found, seen, linked))
        except FileNotFoundError:  # deleted since it was listed
            continue
        except OSError as error:
            _hide(key, error, found)


def _folders(
    folder: Path,
    entries: Sequence[os.DirEntry[str]],
    selection: FileSelection,
    ignores: IgnoreFiles,
    found: Scan,
    seen: dict[tuple[int, int], str],
    linked: deque[tuple[Path, IgnoreFiles, bool]],
) -> list[tuple[Path, IgnoreFiles]]:
    """Take the files of a folder and queue its links in `linked`. Return the folders to enter."""
    root, folders = selection.root, []
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder = entry.is_dir()
            if found.closed(path.relative_to(root).as_posix() + "/" * is_folder):
                continue
            reason = selection.leaves_out(path, is_folder, ignores)
            if reason is not None:
                if reason:
                    found.ignored[path.relative_to(root).as_posix() + "/" * is_folder] = reason
            elif entry.is_symlink() and _leaves(path, root, found, found.remarks):
                continue
            elif entry.is_symlink():
                entry.stat()  # raises for a broken link
                linked.append((path, ignores, is_folder))
            elif is_folder:
                folders.append((path, ignores))
            else:
                _add(path, root, found, seen, entry.stat())
        except FileNotFoundError:
            if entry.is_symlink():  # otherwise it was deleted since it was listed
                message = f"{path.relative_to(root).as_posix()}: the link leads nowhere"
                found.remarks.append(Problem("E010", message, actions=("remove the link",)))
        except OSError as error:
            _hide(path.relative_to(root).as_posix(), error, found, found.remarks if entry.is_symlink() else None)
    return folders


def _add_linked(path: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str]) -> None:
    """Take the file that a link leads to, unless it has been deleted since."""
    with suppress(FileNotFoundError):
        try:
            _add(path, root, found, seen, path.stat())
        except OSError as error:
            _hide(path.relative_to(root).as_posix(), error, found, found.remarks)


def _add(path: Path, root: Path, found: Scan, seen: dict[tuple[int, int], str], state: os.stat_result) -> None:
    key = path.relative_to(root).as_posix()
    if displayable_name(key) != key:
        _note_name(key, found)
        return
    if not S_ISREG(state.st_mode):  # opening a named pipe would block until a writer opens it
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
    """Report a name that cannot be a key: a problem if it is not UTF-8, a remark if the locale cannot encode it."""
    try:
        spelled = os.fsencode(key).decode()
    except UnicodeError:
        found.problems.append(Problem("E014", f"{key}: the name is not UTF-8", "Rename the file."))
        return
    hint = "While names are read in this locale, the file is left out and its memory is absent."
    message = f"{spelled}: the locale cannot encode the name"
    found.remarks.append(Problem("E014", message, hint, ("set LC_ALL=C.UTF-8",)))


def _leaves(path: Path, root: Path, found: Scan, problems: list[Problem]) -> bool:
    """Whether a link in the path leads out of the root, which is reported, or into a private folder of others."""
    place, top = Path(os.path.realpath(path)), os.path.realpath(root)
    if place.is_relative_to(top):
        return found.closed(place.relative_to(top).as_posix() + "/" * is_folder(place))
    key = path.relative_to(root).as_posix()
    hint = "Links are followed only within the workspace: copy the file, or choose a root that contains both."
    problems.append(Problem("E014", f"{key}: {inside.LEADS_OUT}", hint))
    found.hidden.append(key)
    return True


def _hide(key: str, error: OSError, found: Scan, problems: list[Problem] | None = None) -> None:
    (found.problems if problems is None else problems).extend(_os_error(key, error).problems)
    if not isinstance(error, FileNotFoundError):
        found.hidden.append(key)


def below(key: str, folder: str) -> bool:
    """Whether a key is the folder itself or below it; "" is the root."""
    return not folder or key == folder or key.startswith(f"{folder}/")


def below_any(key: str, folders: Set[str]) -> bool:
    """Whether a key is one of the folders or below one; the time does not depend on their number."""
    return any(each in folders for each in with_folders(key))


def _os_error(key: str, error: OSError) -> SpeckitError:
    code = {ENOENT: "E010", EACCES: "E011", EPERM: "E011", EFBIG: "E013"}.get(error.errno or 0, "E014")
    return SpeckitError(code, f"{key}: {inside.reason(error)}")
