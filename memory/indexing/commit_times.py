"""When git first and last took the files of a workspace in: a clone gives all of them the time of the clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import which
from threading import Timer
from typing import NamedTuple

from speckit_memory.errors import Problem

SECONDS = 20.0
"""A history that takes longer to read is left alone: it is hundreds of thousands of commits."""
_PLAIN = (
    "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
    "-c", "core.hooksPath=/dev/null",
)  # fmt: skip
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
    `keys` are paths below the root with "/". The problem says that the history took too long.
    """
    folder = _repository(root)
    git = which("git")
    if folder is None or git is None or not keys or (folder / "shallow").exists():
        return {}, []
    wanted = set(keys)
    tracked = wanted & set(_listed(git, root, "ls-files", "-z"))
    if not tracked:
        return {}, []
    log = _listed(git, root, "log", "-z", "--format=%x01%ct", "--name-only", "--no-renames", "--relative", "--", ".")
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    time = 0.0
    try:
        for name in log:
            if name.startswith("\x01"):
                time = float(name[1:])
            elif (key := name.lstrip("\n")) in tracked:
                first[key] = time
                last.setdefault(key, time)
        changed = set(_listed(git, root, "diff", "-z", "--name-only", "--no-ext-diff", "--relative", "HEAD", "--", "."))
    except TimeoutError:
        message = f"the history of this repository took git more than {SECONDS:g} seconds: documents without a date of "
        return {}, [Problem("E096", f"{message}their own are as old as their files")]
    return {key: CommitTimes(first[key], None if key in changed else last[key]) for key in first}, []


def _repository(root: Path) -> Path | None:
    """The folder in which git keeps the history of a workspace; None for none."""
    for folder in (root, *root.parents):
        found = folder / ".git"
        if (found / "objects").is_dir() and (found / "HEAD").exists():
            return found
        if found.is_file():  # of a work tree or a submodule
            with suppress(OSError, UnicodeDecodeError):
                said = found.read_text("utf-8").removeprefix("gitdir:").strip()
                return folder / said
    return None


def _listed(git: str, root: Path, *command: str) -> Iterator[str]:
    """What git prints, one entry after the other; nothing of a command that fails. Raises TimeoutError."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ALONE
    with subprocess.Popen(
        [git, *_PLAIN, *command], cwd=root, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
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
