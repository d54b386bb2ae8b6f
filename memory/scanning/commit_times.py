"""When git first and last took the files of a workspace in: a clone gives all of them the time of the clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path
from shutil import which
from threading import Timer
from typing import NamedTuple

from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import Problem
from speckit_memory.memory.scanning.ignore_files import git_folder

SECONDS = 20.0
"""A history that takes longer to read is left alone: it is hundreds of thousands of commits."""
_PLAIN = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.hooksPath=/dev/null",
)
_ALONE = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
"""Nothing that a repository configures is run, nothing is fetched and nobody is asked."""


class CommitTimes(NamedTuple):
    """The times of the first and of the last commit of a file, in seconds since 1970; the last is None where the file
    differs from what was committed."""

    first: float
    last: float | None


def commit_times(root: Path, keys: Collection[str]) -> tuple[dict[str, CommitTimes], list[Problem]]:
    """The times of those of these files that git knows.

    Empty outside of a repository, without git, and in a shallow clone, whose first commit is not that of any file.
    `keys` are paths below the root with "/". The problem says why the history could not be read.
    """
    git = which("git")
    if git is None or not keys or not _has_whole_history(root):
        return {}, []
    try:
        return _read(git, root, set(keys)), []
    except TimeoutError:
        why = f"the history of this repository took git more than {SECONDS:g} seconds"
    except OSError as error:
        why = f"git cannot read the history of this repository: {error.strerror or error}"
    return {}, [Problem("E102", why)]


def _read(git: str, root: Path, keys: Collection[str]) -> dict[str, CommitTimes]:
    """The times of those of these files that git knows. Raises OSError, and TimeoutError of these."""
    tracked = set(_listed(git, root, "ls-files", "-z")).intersection(keys)
    if not tracked or not list(_listed(git, root, "rev-list", "--all", "--max-count=1")):
        return {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    time = 0.0
    # no path below the root begins with "/"
    for name in _listed(
        git, root, "log", "-z", "--format=/%ct", "--name-only", "--no-renames", "--relative", "--", "."
    ):
        if name.startswith("/"):
            time = float(name[1:])
        elif (key := name.lstrip("\n")) in tracked:
            first[key] = time
            last.setdefault(key, time)
    changed = set(_listed(git, root, "diff", "-z", "--name-only", "--no-ext-diff", "--relative", "HEAD", "--", "."))
    return {key: CommitTimes(first[key], None if key in changed else last[key]) for key in first}


def _has_whole_history(root: Path) -> bool:
    """Whether a workspace lies in a repository whose first commits are there."""
    entry = next((folder / ".git" for folder in (root, *root.parents) if is_there(folder / ".git")), None)
    if entry is None:
        return False
    history = git_folder(entry)
    return is_there(history / "objects") and not is_there(history / "shallow")


def _listed(git: str, root: Path, *command: str) -> Iterator[str]:
    """What git prints, one entry after the other. Raises OSError for a command that fails, and TimeoutError."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ALONE
    with subprocess.Popen(
        [git, *_PLAIN, *command],
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            rest = b""
            while block := process.stdout.read(1 << 16) if process.stdout else b"":
                *entries, rest = (rest + block).split(b"\0")
                yield from (entry.decode("utf-8", "surrogateescape") for entry in entries)
            if rest.strip():
                yield rest.decode("utf-8", "surrogateescape")
            expired = not timer.is_alive()
        finally:
            timer.cancel()
    if expired:
        raise TimeoutError
    if process.returncode:
        raise OSError(f"`git {command[0]}` failed; run in a shell it says why")
