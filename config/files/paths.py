"""Paths given by users: on the command line, in the environment, in a file or in a call."""

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
    EINVAL: ("the name is not valid on this system", "give another path"),
}

_PATH = "A path is a str or a pathlib.Path."


def named_path(named: str | Path, what: str = "the path") -> Path:
    """A path as given, with `~` replaced by the home folder. `what` describes its origin in errors.

    The path need not exist. Raises E014 for a path that no file can have: empty, with a NUL character, below the home
    folder of an unknown user, too long, or through a loop of links. Raises E030 for another type.
    """
    if not isinstance(named, str | Path):
        raise SpeckitError("E030", f"{what} is {_describe(named)}", hint=_PATH)
    text = str(named)
    if not text:
        actions = ("write . for the folder you are in", "check that the variable it came from is set")
        raise SpeckitError("E014", f"{what} is empty", hint="A path names a file or folder.", actions=actions)
    if "\0" in text:
        raise _refused(text.replace("\0", "\\x00"), what, "a name cannot contain a NUL character", "give another path")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        user = text.split("/", maxsplit=1)[0]
        raise _refused(text, what, f"'{user}' has no home folder here", "write ./ before a name") from None
    try:
        # Only errors that no later creation of the file could cure are reported here.
        path.stat()
    except OSError as error:
        if error.errno in _NEVER_A_FILE:
            raise _refused(text, what, *_NEVER_A_FILE[error.errno]) from None
    return path


def named_paths(named: str | Path | Iterable[str | Path], what: str = "the path") -> list[Path]:
    """One or several paths, absolute and without links. Raises E014 and E030 with all invalid ones."""
    given: object = named
    if isinstance(given, bytes) or not isinstance(given, str | Path | Iterable):
        raise SpeckitError("E030", f"{what} is {_describe(named)}", hint=f"{_PATH} Several may be given as a list.")
    paths: list[Path] = []
    problems: list[Problem] = []
    for each in [named] if isinstance(named, str | Path) else named:
        try:
            paths.append(resolve_path(named_path(each, what)))
        except SpeckitError as error:
            problems += error.problems
    if problems:
        raise SpeckitError.of(problems)
    return paths


def resolve_path(path: Path) -> Path:
    """The absolute path without links, as far as it exists. Raises E014 if the working folder was deleted."""
    return Path(os.path.realpath(path if path.is_absolute() else working_folder() / path))


def working_folder() -> Path:
    """The folder in which the command was started. Raises E014 if it was deleted since."""
    try:
        return Path.cwd()
    except OSError:
        raise SpeckitError(
            "E014",
            "the folder in which this was started does not exist any more",
            hint="Relative paths and the search for the workspace begin there.",
            actions=("go to a folder that exists", "set SPECKIT_ROOT and give absolute paths"),
        ) from None


def is_working_folder(path: Path) -> bool:
    """Whether this absolute path is the folder in which the command was started."""
    try:
        return Path.cwd().resolve() == path
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Whether something exists at the path; False if access is denied."""
    return _mode(path) is not None


def is_folder(path: Path) -> bool:
    """Whether the path is a folder, or a link to one; False if access is denied."""
    return stat.S_ISDIR(_mode(path) or 0)


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, or a link to one; False if access is denied."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


def _describe(found: object) -> str:
    return f"of the type {type(found).__name__}"


def _refused(text: str, what: str, reason: str, action: str) -> SpeckitError:
    beginning = text if len(text) <= 80 else f"{text[:80]}…"
    return SpeckitError("E014", f"{what} '{beginning}' cannot be used: {reason}", actions=(action,))
