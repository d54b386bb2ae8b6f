"""Tables for a terminal that is too narrow for them: wrapped cells, or columns that follow in lines of their own."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import click

from speckit_memory.server.console.folding import cells, fold

GAP = 2
LEAST_CELLS = 20
"""A text is not wrapped into a column narrower than this, unless it is shorter anyway."""

Rows = Sequence[Sequence[str]]


def widths(rows: Rows) -> list[int]:
    """The cells that each column needs."""
    return [max(cells(click.unstyle(cell)) for cell in column) for column in zip(*rows, strict=True)]


def aligned(rows: Rows, room: Sequence[int], right: Sequence[int]) -> list[str]:
    """A line for each row, its columns as wide as `room` says."""
    lines = []
    for row in rows:
        padded = []
        for column, cell in enumerate(row):
            padding = " " * (room[column] - cells(click.unstyle(cell)))
            padded.append(padding + cell if column in right else cell + padding)
        lines.append((" " * GAP).join(padded).rstrip())
    return lines


def fitted(rows: Rows, right: Sequence[int], room: int, headed: bool) -> list[str]:
    """A text for each row, of one or several lines that fit `room` cells.

    Texts are wrapped in their columns as long as that leaves them readable. Else as many columns as fit stay, and what
    the others hold follows below its row, with the names of the columns where there are any.
    """
    natural = widths(rows)
    least = [_least(column) for column in zip(*rows, strict=True)]
    if sum(least) + GAP * (len(least) - 1) <= room:
        return _wrapped(rows, _shared(natural, least, room - GAP * (len(least) - 1)), right)
    kept = 1
    while kept < len(natural) and sum(natural[: kept + 1]) + GAP * kept <= room:
        kept += 1
    return _split(rows, kept, natural, right, room, headed)


def _least(column: Sequence[str]) -> int:
    """How narrow a column may become: as its longest word, but not below what a text needs."""
    plain = [click.unstyle(cell) for cell in column]
    words = max((cells(word) for cell in plain for word in cell.split()), default=0)
    return max(words, min(max(map(cells, plain)), LEAST_CELLS))


def _shared(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of the columns once the widest that can have given way, cell by cell, until all fit."""
    given = list(natural)
    while sum(given) > room:
        widest = max((c for c in range(len(given)) if given[c] > least[c]), key=lambda c: given[c])
        given[widest] -= 1
    return given


def _wrapped(rows: Rows, given: Sequence[int], right: Sequence[int]) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # the styles are taken off again where they are not wanted, when the text is written
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
    lines = aligned(begun, natural, right) if kept > 1 else ["\n".join(fold(row[0], room)) for row in begun]
    shown = lines[:1] if headed else []
    for line, row in zip(lines[len(shown) :], body, strict=True):
        rest = [f"{name} {cell.strip()}".strip() for name, cell in zip(names[kept:], row[kept:], strict=True)]
        below = fold(" · ".join(text for text, cell in zip(rest, row[kept:], strict=True) if cell.strip()), room - 4)
        shown.append("\n".join([line, *(f"    {text}" for text in below if text)]))
    return shown
