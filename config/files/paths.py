"""Paths that somebody named: at the command line, in the environment, in a file or in a call."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from errno import EINVAL, ELOOP, ENAMETOOLONG
from pathlib import Path

from speckit_memory.errors import Problem, SpeckitError

_NEVER_A_FILE = {
    ELOOP: ("a link on the way leads back to itself", "remove the link"),
    ENAMETOOLONG: ("the name is longer than the system allows", "give a shorter path"),
    EINVAL: ("the system has no such names", "give another path"),
}

_PATH = "A path is a str or a pathlib.Path."


def named_path(named: str | Path, what: str = "the path") -> Path:
    """A path as it was named, with the home folder in the place of `~`. `what` says where it was named, for errors.

    Nothing need be there. Raises E014 for what no file can be called: an empty path, one with a NUL character, one that
    begins with the home folder of nobody, one that is too long or leads in a circle. Raises E030 for what is no path.
    """
    if not isinstance(named, str | Path):
        raise SpeckitError("E030", f"{what} is {_told(named)}", hint=_PATH)
    text = str(named)
    if not text:
        actions = ("write . for the folder you are in", "check that the variable it came from is set")
        raise SpeckitError("E014", f"{what} is empty", hint="A path names a file or folder.", actions=actions)
    if "\0" in text:
        raise _refused(text.replace("\0", "\\x00"), what, "no name holds a NUL character", "give another path")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        user = text.split("/", maxsplit=1)[0]
        raise _refused(text, what, f"'{user}' has no home folder here", "write ./ before a name") from None
    try:
        path.stat()
    except OSError as error:
        if error.errno in _NEVER_A_FILE:
            raise _refused(text, what, *_NEVER_A_FILE[error.errno]) from None
    return path


def named_paths(named: str | Path | Iterable[str | Path], what: str = "the path") -> list[Path]:
    """One or several of them, made absolute and without links. Raises E014 and E030 with all that is no path."""
    given: object = named
    if isinstance(given, bytes) or not isinstance(given, str | Path | Iterable):
        raise SpeckitError("E030", f"{what} is {_told(named)}", hint=f"{_PATH} Several may be given as a list.")
    paths: list[Path] = []
    problems: list[Problem] = []
    for each in [named] if isinstance(named, str | Path) else named:
        try:
            paths.append(resolved(named_path(each, what)))
        except SpeckitError as error:
            problems += error.problems
    if problems:
        raise SpeckitError.of(problems)
    return paths


def resolved(path: Path) -> Path:
    """An absolute path without links, as far as it exists. Raises E014 when it begins at a folder that is gone."""
    return Path(os.path.realpath(path if path.is_absolute() else working_folder() / path))


def working_folder() -> Path:
    """The folder in which the command was started. Raises E014 when somebody has deleted it since."""
    try:
        return Path.cwd()
    except OSError:
        raise SpeckitError(
            "E014",
            "the folder in which this was started does not exist any more",
            hint="Relative paths begin there, and so does the search for the workspace.",
            actions=("go to a folder that exists", "set SPECKIT_ROOT and give absolute paths"),
        ) from None


def is_working_folder(path: Path) -> bool:
    """Whether this absolute path is the folder in which the command was started."""
    try:
        return Path.cwd().resolve() == path
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Whether there is something; False where that may not be looked at."""
    return _mode(path) is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder, or a link to one; False where that may not be looked at."""
    return stat.S_ISDIR(_mode(path) or 0)


def is_file(path: Path) -> bool:
    """Whether there is a regular file, or a link to one; False where that may not be looked at."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


def _told(found: object) -> str:
    return f"of the type {type(found).__name__}"


def _refused(text: str, what: str, reason: str, action: str) -> SpeckitError:
    beginning = text if len(text) <= 80 else f"{text[:80]}…"
    return SpeckitError("E014", f"{what} '{beginning}' cannot be used: {reason}", actions=(action,))
