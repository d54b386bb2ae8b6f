"""Shows the line of a file that a problem refers to, with a mark below the column."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.errors import Problem
from speckit_memory.errors.codes import CODES
from speckit_memory.server.console.output import MAX_WIDTH, printable
from speckit_memory.server.console.wrapping import cells

LEAST_ROOM = 60
"""Minimum width of the terminal in columns; a shorter part of the line would not help."""
GAP = " | "


def pointed_line(problem: Problem, room: int | None) -> list[str]:
    """Returns the line and the mark, cut to `room` columns; [] unless the problem has a place in a readable settings
    file.

    Lines of documents are never shown, since the problem may be a secret in them.
    """
    where = problem.where
    narrow = room is not None and room < LEAST_ROOM
    if narrow or where is None or where.path is not None or CODES[problem.code].category != "configuration":
        return []
    try:
        line = read_text(Path(where.file)).split("\n")[where.line - 1].expandtabs(1)
    except (OSError, ValueError, IndexError):
        return []
    if not line.strip():
        return []
    number = f"{where.line:>5}"
    size = min(room or MAX_WIDTH, MAX_WIDTH) - len(number) - len(GAP) - 2
    column = min(where.column - 1, len(line))
    # a window of `size` characters around the column, within the line
    start = max(min(column - size // 2, len(line) - size), 0)
    ahead, shown = printable(line[start:column]), printable(line[start : start + size])
    cut = "…" if start else "", "…" if start + size < len(line) else ""
    mark = " " * (cells(ahead) + len(cut[0])) + "^"
    return [number + GAP + cut[0] + shown + cut[1], " " * len(number) + GAP + mark]
