"""Selects the folders of a workspace to enter and the documents to index.

A path named explicitly is always taken. Below it, in this order: build and tool folders are skipped; `sources.exclude`
of the workspace file excludes, or includes again with `!`; then Git's ignore files exclude; hidden folders are entered
if agent tools keep documents there or `sources.include` names them; and if `sources.include` also has patterns for
other places, only matching documents are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from speckit_memory.config.files.paths import is_folder
from speckit_memory.config.files.patterns import compile_patterns
from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES, suffixes_taken
from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.errors import Problem
from speckit_memory.memory.scanning.ignore_files import IgnoreFiles, PatternList, is_linked_worktree

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DOCUMENT_FOLDERS = frozenset({".claude", ".cursor", ".github", ".specify"})
"""Hidden folders in which people keep instructions, specifications and plans."""
SKIPPED_FOLDERS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "target", "venv"})
"""Folders of generated or installed files."""
TOOL_FOLDERS = frozenset(
    {
        ".cache",
        ".direnv",
        ".eggs",
        ".git",
        ".gradle",
        ".hg",
        ".mypy_cache",
        ".next",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".speckit",
        ".svn",
        ".terraform",
        ".tox",
        ".venv",
    }
)
"""Hidden folders of generated files, which no pattern can include."""

HIDDEN = "hidden"
WORKTREE = "another worktree of a repository"
NO_DOCUMENT = "not taken for a document"
FORMAT = "a format that sources.formats does not name"
NOT_INCLUDED = f"{CONFIG_FILE}: sources.include"


@dataclass(frozen=True)
class FileSelection:
    """Decides what is taken below one named folder. Paths given to it are absolute and below that folder."""

    folder: Path
    root: Path
    include: tuple[str, ...]
    """The patterns of `sources.include` that concern this folder."""
    exclude: PatternList
    formats: tuple[str, ...] = ()
    """The formats that are taken in addition to Markdown and plain text."""

    @classmethod
    def below(cls, folder: Path, root: Path, patterns: SourcePatterns) -> FileSelection:
        """Return the selection below a folder of the workspace, even if the folder itself would be excluded."""
        parts = folder.relative_to(root).parts
        include = [pattern.text for pattern in patterns.include]
        general = [_segments(pattern) for pattern in include if not _opens_hidden(pattern)]
        # Without a general pattern for this folder, the remaining ones only open hidden folders.
        if not any(_reaches(pattern, parts, len(parts)) for pattern in general):
            include = [pattern for pattern in include if _opens_hidden(pattern)]
        exclude = PatternList(
            str(root),
            tuple(pattern.text for pattern in patterns.exclude),
            tuple(f"{CONFIG_FILE}:{pattern.where.line}:{pattern.where.column}" for pattern in patterns.exclude),
        )
        if parts:
            exclude = exclude.without_those_that_leave_out(str(folder))
        return cls(folder, root, tuple(include), exclude, patterns.formats)

    def ignore_files(self, remarks: list[Problem]) -> IgnoreFiles:
        """Return the ignore files of the folder's parents."""
        return IgnoreFiles.above(self.folder, self.root, remarks)

    def leaves_out(self, path: Path, is_folder: bool, ignores: IgnoreFiles) -> str | None:
        """Return why an entry of a folder is not taken, "" if that need not be reported; None if it is taken."""
        name = path.name
        if is_folder and (name in SKIPPED_FOLDERS or name in TOOL_FOLDERS):
            return ""
        suffix = "" if is_folder else PurePosixPath(name).suffix.lower()
        if not is_folder and suffix not in self._suffixes:
            return self._why_no_document(path, suffix)
        # sources.exclude takes precedence: False (a "!" pattern) also overrides the ignore files.
        excluded, why = self.exclude.verdict(str(path), is_folder)
        if excluded is None:
            why = ignores.reason(str(path), is_folder).removeprefix(f"{self.root}/")
        if excluded is not False and why:
            return why
        if is_folder and is_linked_worktree(path):
            return WORKTREE
        return self._not_included(path, is_folder)

    @cached_property
    def _suffixes(self) -> frozenset[str]:
        return suffixes_taken(self.formats)

    def _why_no_document(self, path: Path, suffix: str) -> str:
        """Return the reason for a document in a format that could be enabled, which the user may not know."""
        shown = len(self.folder.relative_to(self.root).parts)
        hidden = any(map(_is_hidden, path.relative_to(self.root).parts[shown:]))
        return FORMAT if suffix in DOCUMENT_SUFFIXES and not hidden else ""

    @cached_property
    def _included(self) -> GitIgnoreSpec:
        return compile_patterns(self.include)

    def _not_included(self, path: Path, is_folder: bool) -> str | None:
        parts, shown = path.relative_to(self.root).parts, len(self.folder.relative_to(self.root).parts)
        hidden = any(map(_is_hidden, parts[shown:]))
        if not hidden and (is_folder or all(map(_opens_hidden, self.include))):
            return None
        reached = any(_reaches(_segments(pattern), parts, shown) for pattern in self.include)
        if reached and (is_folder or self._included.match_file("/".join(parts))):
            return None
        return HIDDEN if hidden else NOT_INCLUDED


class OneByOne:
    """Tells why single paths below the folder of a selection are not taken. Parent folders are checked once."""

    def __init__(self, selection: FileSelection) -> None:
        self._selection = selection
        self._remarks: list[Problem] = []  # discarded: the scan of these folders reports them
        self._ways: dict[Path, IgnoreFiles | str] = {}

    def reason(self, path: Path) -> str:
        """Return why a run over the folder would not take a path below it, "" if it would."""
        way = self._ways.get(path.parent)  # known for most paths, which halves the time
        if way is None:
            way = self._way(path.parent)
        return way if isinstance(way, str) else self._why(path, way)

    def _way(self, folder: Path) -> IgnoreFiles | str:
        """Return the ignore files in force inside a folder, or why it is not entered."""
        at = self._selection.folder
        way = self._ways.get(at)
        if way is None:
            way = self._ways[at] = self._selection.ignore_files(self._remarks).inside(at, self._remarks)
        for part in folder.relative_to(at).parts:
            at /= part
            if at not in self._ways:
                self._ways[at] = way if isinstance(way, str) else self._why(at, way) or way.inside(at, self._remarks)
            way = self._ways[at]
        return way

    def _why(self, path: Path, ignores: IgnoreFiles) -> str:
        reason = self._selection.leaves_out(path, is_folder(path), ignores)
        return "" if reason is None else reason or NO_DOCUMENT


def reason_to_leave_out(path: Path, root: Path, patterns: SourcePatterns) -> str:
    """Return why a run over the whole workspace would not take a path below the root, "" if it would."""
    return "" if path == root else OneByOne(FileSelection.below(root, root, patterns)).reason(path)


def refusal(parts: tuple[str, ...], is_folder: bool, patterns: SourcePatterns) -> str:
    """Return why an agent may not name a path below the root, "" if it may (ignore files apart)."""
    folders = parts if is_folder else parts[:-1]
    if skipped := next((part for part in folders if part in SKIPPED_FOLDERS or part in TOOL_FOLDERS), ""):
        return f"in '{skipped}'"
    if not any(map(_is_hidden, parts)) or any(_reaches(_segments(pattern.text), parts) for pattern in patterns.include):
        return ""
    return HIDDEN


def _segments(pattern: str) -> tuple[str, ...]:
    """Return the parts of a pattern, with `**` first if it matches at any depth."""
    parts = [part for part in pattern.rstrip("/").split("/") if part]
    return tuple(parts) if "/" in pattern.rstrip("/") else ("**", *parts)


def _opens_hidden(pattern: str) -> bool:
    return any(part.startswith(".") for part in _segments(pattern))


def _reaches(pattern: tuple[str, ...], path: tuple[str, ...], shown: int = 0) -> bool:
    """Whether a pattern matches a path, something below it, or a parent of it.

    As in a shell, only a dot matches the dot of a hidden name. The first `shown` parts of the path count as not hidden
    because they were named, and so do `DOCUMENT_FOLDERS`.
    """
    hidden = [at >= shown and _is_hidden(part) for at, part in enumerate(path)]
    # Dynamic programming from the last part of the pattern: reached[at] says whether the rest of the pattern
    # reaches path[at:].
    reached = [not any(hidden[at:]) for at in range(len(path))] + [True]
    for part in reversed(pattern):
        rest, reached = reached, [True] * (len(path) + 1)
        for at in reversed(range(len(path))):
            if part == "**":
                # ** matches nothing, or one more part that is not hidden.
                reached[at] = rest[at] or (not hidden[at] and reached[at + 1])
            else:
                opened = not hidden[at] or part.startswith(".")
                reached[at] = opened and rest[at + 1] and fnmatchcase(path[at], part)
    return reached[0]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and name not in DOCUMENT_FOLDERS
