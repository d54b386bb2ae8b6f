"""Reads the files of `.speckit` that people edit, with a bound on their size, or reports why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from os.path import lexists
from pathlib import Path

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.errors import Problem


def workspace_text(file: Path, read: Callable[[Path], str] = read_text) -> tuple[str | None, list[Problem]]:
    """The text of a file, None if there is none, and the problem if it cannot be read.

    Links are followed. A dangling link is a file that cannot be read: a setting must not be ignored silently.
    """
    try:
        return read(file), []
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not lexists(file):
            return None, []
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        actions = ("make it a readable text file", "remove it")
        return None, [Problem("E110", f"{file} cannot be read: {reason}", actions=actions)]
