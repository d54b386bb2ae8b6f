"""Text that fits: lines broken at blanks, and measured in the cells of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"(?:`[^`\n]*`|\S)+")
"""What stays in one piece: a word, and code between backticks, which people copy."""


def cells(text: str) -> int:
    """How many cells a text without styles fills: wide East Asian signs take two, combining ones none."""
    from rich.cells import cell_len  # a millisecond, which `serve` does without

    return cell_len(text)


def fold(text: str, room: int, taken: int = 0) -> list[str]:
    """The text in lines of at most `room` cells; `taken` cells of the first line are not free.

    Only a word longer than a whole line is cut.
    """
    lines: list[str] = []
    line, free = "", room - taken
    for piece in _pieces(text, room):
        longer = f"{line} {piece}" if line else piece
        if cells(longer) <= free:
            line = longer
            continue
        if line or (taken and not lines):
            lines.append(line)
        line, free = piece, room
    return [*lines, line]


def cut_to_cells(text: str, room: int) -> str:
    """The text, or as much of its beginning as fits `room` cells with a mark that there was more."""
    from rich.cells import set_cell_size

    return text if cells(text) <= room else set_cell_size(text, max(room - 1, 0)).rstrip() + "…"


def _pieces(text: str, room: int) -> Iterator[str]:
    from rich.cells import chop_cells

    for token in _TOKEN.findall(text):
        for word in [token] if cells(token) <= room else token.split():
            yield from chop_cells(word, room) if cells(word) > room else [word]
