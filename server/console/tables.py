"""Fits tables to narrow terminals: cells are wrapped, or columns moved to separate lines."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import click

from speckit_memory.server.console.terminal import cells, fold

GAP = 2
LEAST_CELLS = 20
"""Minimum width of a column of wrapped text."""

Rows = Sequence[Sequence[str]]


def widths(rows: Rows) -> list[int]:
    """The natural width of each column in cells."""
    return [max(cells(click.unstyle(cell)) for cell in column) for column in zip(*rows, strict=True)]


def align_rows(rows: Rows, room: Sequence[int], right: Sequence[int]) -> list[str]:
    """One line per row; `room` has the widths of the columns."""
    lines = []
    for row in rows:
        padded = []
        for column, cell in enumerate(row):
            padding = " " * (room[column] - cells(click.unstyle(cell)))
            padded.append(padding + cell if column in right else cell + padding)
        lines.append((" " * GAP).join(padded).rstrip())
    return lines


def fit_rows(rows: Rows, right: Sequence[int], room: int, headed: bool) -> list[str]:
    """Renders each row as one or more lines within `room` cells.

    Cells are wrapped if the columns stay readable. Otherwise only the first columns stay in the row, and the others
    follow below it with their names.

    Args:
        rows: The cells, which may be styled.
        right: Numbers (from 0) of the columns aligned to the right.
        room: Width in cells.
        headed: Whether the first row has the names of the columns.
    """
    natural = widths(rows)
    least = [_least(column) for column in zip(*rows, strict=True)]
    # least: minimum width per column; if they fit, wrap cells, else move columns below the row
    if sum(least) + GAP * (len(least) - 1) <= room:
        return _wrapped(rows, _shared(natural, least, room - GAP * (len(least) - 1)), right)
    kept = 1
    while kept < len(natural) and sum(natural[: kept + 1]) + GAP * kept <= room:
        kept += 1
    return _split(rows, kept, natural, right, room, headed)


def _least(column: Sequence[str]) -> int:
    """Minimum width of a column: its longest word, but at least `LEAST_CELLS` for longer texts."""
    plain = [click.unstyle(cell) for cell in column]
    words = max((cells(word) for cell in plain for word in cell.split()), default=0)
    return max(words, min(max(map(cells, plain)), LEAST_CELLS))


def _shared(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Shrinks the widest shrinkable column, cell by cell, until all columns fit; returns the widths."""
    given = list(natural)
    while sum(given) > room:
        # always shrink the widest column that may shrink, which evens out the widths
        widest = max((c for c in range(len(given)) if given[c] > least[c]), key=lambda c: given[c])
        given[widest] -= 1
    return given


def _wrapped(rows: Rows, given: Sequence[int], right: Sequence[int]) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # click removes the styles on output if they are not wanted
    console = Console(file=StringIO(), width=sum(given) + GAP * len(given), force_terminal=True, color_system="256")
    drawn = []
    for row in rows:
        grid = Table.grid(padding=(0, GAP, 0, 0))
        for column, width in enumerate(given):
            grid.add_column(width=width, justify="right" if column in right else "left", overflow="fold")
        grid.add_row(*(Text.from_ansi(cell) for cell in row))
        with console.capture() as capture:
            console.print(grid, end="")
        drawn.append(capture.get().rstrip("\n"))
    return drawn


def _split(rows: Rows, kept: int, natural: Sequence[int], right: Sequence[int], room: int, headed: bool) -> list[str]:
    names = [*rows[0]] if headed else [""] * len(natural)
    body = rows[1:] if headed else rows
    begun = [row[:kept] for row in ([names, *body] if headed else body)]
    lines = align_rows(begun, natural, right) if kept > 1 else ["\n".join(fold(row[0], room)) for row in begun]
    shown = lines[:1] if headed else []
    for line, row in zip(lines[len(shown) :], body, strict=True):
        rest = [f"{name} {cell.strip()}".strip() for name, cell in zip(names[kept:], row[kept:], strict=True)]
        below = fold(" · ".join(text for text, cell in zip(rest, row[kept:], strict=True) if cell.strip()), room - 4)
        shown.append("\n".join([line, *(f"    {text}" for text in below if text)]))
    return shown
