"""Wraps text at blanks, measured in terminal cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
