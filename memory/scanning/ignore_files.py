"""Reads ignore files: Git's (`.gitignore` in every folder, `info/exclude`, the user's global file) and this product's
(`.speckitignore` in every folder).

Only the patterns decide, even for a file that Git tracks despite them. They also apply outside a repository, since the
author of a `.gitignore` does not want these files shared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from errno import EFBIG, EINVAL, EISDIR, ENOENT, ENOTDIR
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.files.paths import is_file, is_there, named_path
from speckit_memory.config.files.patterns import compile_patterns, last_match
from speckit_memory.config.files.regular_file import read_bytes, read_text
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.scanning import inside

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAME = ".gitignore"
OWN_NAME = ".speckitignore"
"""The ignore file of this product. It overrides the `.gitignore` in its folder, and applies in nested repositories."""
LARGEST = 1_000_000
"""Bytes. A larger file is not a hand-written list of patterns."""
MOST_PATTERNS = 5_000
"""Each pattern is tried on every name; the longest generated lists have some hundreds."""
LONGEST_PATTERN = 4096
"""Characters; paths are not longer."""
SHOWN_OF_PATTERN = 80

_NO_SUCH_FILE = (ENOENT, ENOTDIR, EISDIR, EINVAL)
"""Errors that mean there is no ignore file; as in Git, a folder or named pipe with its name does not count."""
_EXCLUDES_FILE = re.compile(r'^\s*excludesfile\s*=\s*"?([^"\n]+?)"?\s*$', re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class PatternList:
    """Patterns relative to the folder `base`, each with its place for reports."""

    base: str
    patterns: tuple[str, ...]
    places: tuple[str, ...]
    own: bool = False
    """Whether they come from a `.speckitignore`."""

    @cached_property
    def spec(self) -> GitIgnoreSpec:
        """The patterns, compiled once."""
        return compile_patterns(self.patterns)

    def verdict(self, path: str, is_folder: bool) -> tuple[bool | None, str]:
        """Return whether the last matching pattern ignores the path (None without a match), and the pattern's place."""
        if not self.patterns:
            return None, ""
        at = last_match(self.spec, _relative(path, self.base), is_folder)
        if at is None:
            return None, ""
        return self.spec.patterns[at].include, f"{self.places[at]}: {self.patterns[at]}"

    def without_those_that_leave_out(self, folder: str) -> PatternList:
        """Return the list without the patterns that ignore this folder or a parent, since it was named explicitly."""
        relative = _relative(folder, self.base)
        kept = [
            (pattern, place)
            for pattern, place in zip(self.patterns, self.places, strict=True)
            if pattern.startswith("!") or not compile_patterns([pattern]).match_file(relative + "/")
        ]
        return replace(self, patterns=tuple(p for p, _ in kept), places=tuple(place for _, place in kept))


class IgnoreFiles:
    """The lists in force in one folder; later ones take precedence."""

    def __init__(self, root: Path, lists: Sequence[PatternList] = ()) -> None:
        self._root = root
        self._lists = tuple(lists)

    @classmethod
    def above(cls, folder: Path, root: Path, remarks: list[Problem]) -> IgnoreFiles:
        """Return the lists of a folder's parents, without the patterns that would ignore the folder itself.

        They start at the top of the folder's repository, even if that is above the workspace.
        """
        parents = [*reversed(folder.parents)]
        top = next((place for place in reversed(parents) if is_there(place / ".git")), root)
        found = cls(root)
        for parent in parents:
            if parent.is_relative_to(top):
                # Parents from the top down, so that lists of deeper folders take precedence.
                found = found.inside(parent, remarks)
        return cls(root, [each.without_those_that_leave_out(str(folder)) for each in found._lists])

    def inside(self, folder: Path, remarks: list[Problem]) -> IgnoreFiles:
        """Return the lists in force inside a folder; a nested repository resets Git's lists. `remarks` gets errors."""
        lists = self._lists
        repository = folder / ".git"
        if is_there(repository):
            # Git's lists of an outer repository do not apply inside a nested one.
            ours = (each for each in lists if each.own)
            lists = (
                *_of_user(folder, remarks),
                *_read(git_folder(repository) / "info" / "exclude", folder, remarks),
                *ours,
            )
        of_git = _read(folder / NAME, folder, remarks, self._root)
        own = (replace(each, own=True) for each in _read(folder / OWN_NAME, folder, remarks, self._root))
        return IgnoreFiles(self._root, (*lists, *of_git, *own))

    def reason(self, path: str, is_folder: bool) -> str:
        """Return the place and the pattern that ignore a path, "" if none does."""
        for each in reversed(self._lists):
            ignored, why = each.verdict(path, is_folder)
            if ignored is not None:
                return why if ignored else ""
        return ""


def git_folder(entry: Path) -> Path:
    """Return the repository of a `.git` entry, following the file that worktrees and submodules have instead."""
    own = _named_in(entry, "gitdir:") if is_file(entry) else entry
    return _named_in(own / "commondir", "") if is_file(own / "commondir") else own


def is_linked_worktree(folder: Path) -> bool:
    """Whether a folder is a linked worktree: its files also exist in the main checkout."""
    entry = folder / ".git"
    return is_file(entry) and is_file(_named_in(entry, "gitdir:") / "commondir")


def _named_in(file: Path, prefix: str) -> Path:
    try:
        text = read_text(file, LARGEST, "surrogateescape").removeprefix(prefix).strip()
    except OSError:
        text = ""
    return Path(os.path.normpath(file.parent / text))


def _of_user(folder: Path, remarks: list[Problem]) -> Iterable[PatternList]:
    """Return the user's global list: `core.excludesFile` in `~/.gitconfig`, or Git's default file."""
    try:
        home = Path.home()
        text = read_text(home / ".gitconfig", LARGEST, "replace")
    except FileNotFoundError:
        text = ""
    except (OSError, RuntimeError):  # unreadable; no home directory
        return ()
    file = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "ignore"
    if named := _EXCLUDES_FILE.search(text):
        try:
            file = home / named_path(named[1], "core.excludesFile")
        except SpeckitError as error:
            remarks += error.problems
            return ()
    return _read(file, folder, remarks)


def _read(file: Path, base: Path, remarks: list[Problem], root: Path | None = None) -> Iterable[PatternList]:
    """Return the patterns of a file, none if it does not exist. Invalid patterns are reported and left out.

    A file in the workspace `root` is not read through a link that leads out of it.
    """
    if not os.path.lexists(file):  # true for most folders; saves opening them
        return ()
    try:
        if root is not None and base.is_relative_to(root):
            data = inside.read(root, file.relative_to(root).as_posix(), LARGEST).data
        else:
            data = read_bytes(file, LARGEST)
    except OSError as error:
        if error.errno == EFBIG:
            message = f"{file}: more than {LARGEST:,} bytes, so its patterns are not applied"
            remarks.append(Problem("E013", message, actions=("shorten the file",)))
        elif error.errno not in _NO_SUCH_FILE:
            message = f"{file}: {inside.reason(error)}, so its patterns are not applied"
            remarks.append(Problem("E011", message))
        return ()
    try:
        text = decode(data, str(file))  # also UTF-16, which a Windows shell writes and Git ignores
    except SpeckitError:
        text = data.decode(errors="surrogateescape")  # file names that are not UTF-8
    lines = [
        (line.removesuffix("\r"), number)
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1)
        if line.strip() and not line.startswith("#")
    ]
    if len(lines) > MOST_PATTERNS:
        message = f"{file}: more than {MOST_PATTERNS:,} patterns, so they are not applied"
        remarks.append(Problem("E013", message, actions=("shorten the file",)))
        return ()
    try:
        if any(len(line) > LONGEST_PATTERN for line, _ in lines):
            raise ValueError
        # One compilation finds out whether any pattern is invalid; only then each is checked.
        compile_patterns([line for line, _ in lines])
    except ValueError:
        lines = [(line, number) for line, number in lines if _is_pattern(line, Where(str(file), number, 1), remarks)]
    places = tuple(f"{file}:{number}" for _, number in lines)
    return (PatternList(str(base), tuple(line for line, _ in lines), places),)


def _is_pattern(line: str, where: Where, remarks: list[Problem]) -> bool:
    try:
        if len(line) > LONGEST_PATTERN:
            raise ValueError
        compile_patterns([line])
    except ValueError:
        line = line if len(line) <= SHOWN_OF_PATTERN else f"{line[:SHOWN_OF_PATTERN]}…"
        hint, actions = "Git ignores it silently.", ("correct the pattern",)
        remarks.append(Problem("E114", f"'{line}' is not a pattern", hint, actions, where))
        return False
    return True


def _relative(path: str, base: str) -> str:
    return path[len(base.rstrip("/")) + 1 :]
