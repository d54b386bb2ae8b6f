"""Writing to standard output: one JSON document, or aligned text. Colour appears on a terminal only (click decides)."""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any

import click

MAX_WIDTH = 120


def print_json(document: Any) -> None:
    """One document, readable and stable."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def width() -> int:
    """Columns to fill: those of the terminal, at most 120."""
    return min(get_terminal_size().columns, MAX_WIDTH)


def wrapped(text: str, indent: str) -> str:
    """Text as an indented block that fits the terminal."""
    return textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "") -> str:
    """Rows with aligned columns; the columns named in `right` (from 0) are aligned to the right."""
    if not rows:
        return ""
    widths = [max(_cells(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for column, cell in enumerate(row):
            padding = " " * (widths[column] - _cells(cell))
            cells.append(padding + cell if column in right else cell + padding)
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def _cells(text: str) -> int:
    """How many terminal cells a text fills: wide East Asian signs take two, styles none."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in click.unstyle(text))
