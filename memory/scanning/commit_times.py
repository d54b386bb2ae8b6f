"""Reads from git when each file was first and last committed: in a clone, all file times are that of the clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path
from shutil import which
from threading import Timer
from time import monotonic
from typing import NamedTuple

from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import Problem
from speckit_memory.memory.scanning.ignore_files import git_folder

SECONDS = 20.0
"""Time limit for reading the history; only hundreds of thousands of commits exceed it."""
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
"""Environment and options that keep git from running configured programs, fetching or prompting."""


class CommitTimes(NamedTuple):
    """The times of a file's first and last commit, in seconds since 1970; `last` is None if the file differs from its
    committed state."""

    first: float
    last: float | None


def commit_times(root: Path, keys: Collection[str]) -> tuple[dict[str, CommitTimes], list[Problem]]:
    """Return the commit times of the files that git tracks, and a problem if the history could not be read.

    Empty outside a repository, without git, and in a shallow clone, where the first commits are missing. `keys` are
    paths relative to the root with "/".
    """
    git = which("git")
    if git is None or not keys or not _has_whole_history(root):
        return {}, []
    try:
        return _read(git, root, set(keys)), []
    except TimeoutError:
        why = f"git took more than {SECONDS:g} seconds to read the history of this repository"
    except OSError as error:
        why = f"git cannot read the history of this repository: {error.strerror or error}"
    return {}, [Problem("E102", why)]


def _read(git: str, root: Path, keys: Collection[str]) -> dict[str, CommitTimes]:
    """Return the commit times of the tracked files. Raises OSError, or its subclass TimeoutError."""
    tracked = set(_git_entries(git, root, "ls-files", "-z")).intersection(keys)
    if not tracked or not list(_git_entries(git, root, "rev-list", "--all", "--max-count=1")):
        return {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    time = 0.0
    # A relative path never begins with "/", so "/" marks the line with the time of the commit.
    for name in _git_entries(
        git, root, "log", "-z", "--format=/%ct", "--name-only", "--no-renames", "--relative", "--", "."
    ):
        if name.startswith("/"):
            time = float(name[1:])
        elif (key := name.lstrip("\n")) in tracked:
            # The log lists the newest commit first: `last` keeps the first value seen, `first` the final one.
            first[key] = time
            last.setdefault(key, time)
    changed = set(
        _git_entries(git, root, "diff", "-z", "--name-only", "--no-ext-diff", "--relative", "HEAD", "--", ".")
    )
    return {key: CommitTimes(first[key], None if key in changed else last[key]) for key in first}


def _has_whole_history(root: Path) -> bool:
    """Whether a workspace is in a repository that is not a shallow clone."""
    entry = next((folder / ".git" for folder in (root, *root.parents) if is_there(folder / ".git")), None)
    if entry is None:
        return False
    history = git_folder(entry)
    return is_there(history / "objects") and not is_there(history / "shallow")


def _git_entries(git: str, root: Path, *command: str) -> Iterator[str]:
    """Yield the NUL-separated entries that git prints. Raises OSError if the command fails, and TimeoutError."""
    # Variables such as GIT_DIR would redirect git to another repository.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ALONE
    with subprocess.Popen(
        [git, *_PLAIN, *command],
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        # Killing git closes its output, which ends the read loop below.
        timer, last = Timer(SECONDS, process.kill), monotonic() + SECONDS
        timer.start()
        try:
            rest = b""
            while block := process.stdout.read(1 << 16) if process.stdout else b"":
                *entries, rest = (rest + block).split(b"\0")
                yield from (entry.decode("utf-8", "surrogateescape") for entry in entries)
            if rest.strip():
                yield rest.decode("utf-8", "surrogateescape")
            expired = monotonic() >= last
        finally:
            timer.cancel()
    if expired:
        raise TimeoutError
    if process.returncode:
        raise OSError(f"`git {command[0]}` failed; run it in a shell to see why")
