"""Tables of figures as data; the display decides on their width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DIGITS = 6
LONGEST_IN_LINE = 100
"""Maximum number of characters of a query in a report."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the column names first. The first column is left-aligned; the others are figures.

    As text the columns are aligned; with `markdown` they have rules, so that the text is a Markdown table too.
    """

    rows: Sequence[Sequence[str]]
    markdown: bool = False

    def __str__(self) -> str:
        least = 3 if self.markdown else 0
        widths = [max(least, *(len(cell) for cell in column)) for column in zip(*self.rows, strict=True)]
        lines = [
            [cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in enumerate(sized)]
            for sized in (list(zip(row, widths, strict=True)) for row in self.rows)
        ]
        if not self.markdown:
            return "\n".join("  ".join(cells).rstrip() for cells in lines)
        rule = ["-" * (width - 1) + (":" if column else "-") for column, width in enumerate(widths)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))


Block = str | Table
"""A part of a report: sentences, one per line, or a table."""


def plain_text(blocks: Sequence[Block]) -> str:
    """A report as text, its parts separated by an empty line; empty parts are left out."""
    return "\n\n".join(filter(None, map(str, blocks)))


def round_figures(figures: Any) -> Any:
    """The same plain data with six decimals, as reports in JSON have them; tuples become lists."""
    if isinstance(figures, Mapping):
        return {name: round_figures(figure) for name, figure in figures.items()}
    if isinstance(figures, list | tuple):
        return [round_figures(figure) for figure in figures]
    return round(figures, _DIGITS) if isinstance(figures, float) else figures


def in_line(asked: str) -> str:
    """A query on one line, cut to `LONGEST_IN_LINE` characters: some queries are whole pages."""
    line = " ".join(asked.split())
    return line if len(line) <= LONGEST_IN_LINE else f"{line[: LONGEST_IN_LINE - 1]}…"
