"""The terminal: its width in cells, text wrapped to it, and whether to use colour."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TextIO

LEAST_COLUMNS = 20
USUAL_COLUMNS = 80
PLAIN_TERMINALS = ("dumb", "unknown")


def columns(stream: TextIO | None = None) -> int | None:
    """The width of the terminal of `stream` (default: standard output) in cells, at least 20; COLUMNS overrides it.

    None without a terminal, so that output to a pipe does not depend on a window's size.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    # ignore COLUMNS values that are not positive numbers
    if said.isascii() and said.isdigit() and int(said):
        return max(int(said), LEAST_COLUMNS)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS, LEAST_COLUMNS)
    except OSError:
        return USUAL_COLUMNS


def colour() -> bool | None:
    """Whether to use colour: True or False if the environment decides, None for "on a terminal only".

    NO_COLOR (not empty), CLICOLOR=0 and a TERM without colours take precedence over FORCE_COLOR and CLICOLOR_FORCE.
    """
    environ = os.environ
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0" or plain():
        return False
    forced = (environ.get("FORCE_COLOR", ""), environ.get("CLICOLOR_FORCE", ""))
    return True if any(value not in ("", "0") for value in forced) else None


def plain() -> bool:
    """Whether the terminal supports neither colour nor cursor movement."""
    return os.environ.get("TERM", "").lower() in PLAIN_TERMINALS


_TOKEN = re.compile(r"(?:`[^`\n]*`|\S)+")
"""Matches an unbreakable piece: a word, or code between backticks, which users copy."""


def cells(text: str) -> int:
    """The width of an unstyled text in cells: wide East Asian characters take two, combining ones none."""
    from rich.cells import cell_len  # costs a millisecond; `serve` does not need it

    return cell_len(text)


def fold(text: str, room: int, taken: int = 0) -> list[str]:
    """Wraps a text to lines of at most `room` cells; `taken` cells of the first line are occupied.

    A word is cut only if it is longer than a line.
    """
    lines: list[str] = []
    line, free = "", room - taken
    for piece in _pieces(text, room):
        longer = f"{line} {piece}" if line else piece
        if cells(longer) <= free:
            line = longer
            continue
        # an empty first line is kept if its beginning is occupied, so that the text starts below it
        if line or (taken and not lines):
            lines.append(line)
        line, free = piece, room
    return [*lines, line]


def cut_to_cells(text: str, room: int) -> str:
    """The text, cut to `room` cells with an ellipsis if it is longer."""
    from rich.cells import set_cell_size

    return text if cells(text) <= room else set_cell_size(text, max(room - 1, 0)).rstrip() + "…"


def _pieces(text: str, room: int) -> Iterator[str]:
    from rich.cells import chop_cells

    for token in _TOKEN.findall(text):
        # code that is longer than a line is broken at its blanks, and only then inside a word
        for word in [token] if cells(token) <= room else token.split():
            yield from chop_cells(word, room) if cells(word) > room else [word]
