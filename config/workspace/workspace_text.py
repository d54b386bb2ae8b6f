"""Reads the files of `.speckit` that people edit: regular ones of bounded size, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable
from os.path import lexists
from pathlib import Path

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.errors import Problem


def workspace_text(file: Path, read: Callable[[Path], str] = read_text) -> tuple[str | None, list[Problem]]:
    """The text of a file, None when there is none, and why what is there cannot be read.

    A link is followed. One that leads nowhere is a file that cannot be read: what somebody decided must not be passed
    over unsaid.
    """
    try:
        return read(file), []
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not lexists(file):
            return None, []
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        actions = ("make it a readable text file", "remove it")
        return None, [Problem("E110", f"{file} cannot be read: {reason}", actions=actions)]
