"""Writing to standard output: one JSON document, or aligned text. Colour appears on a terminal only (click decides)."""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any

import click

MAX_WIDTH = 120
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and the marks that turn the direction of text, all but tabs and line ends."""


def print_json(document: Any) -> None:
    """One document, readable and stable."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def width() -> int:
    """Columns to fill: those of the terminal, at most 120."""
    return min(get_terminal_size().columns, MAX_WIDTH)


def printable(text: str) -> str:
    """Text whose control characters are spelled out, so that no file name or document can command the terminal."""
    return _CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], text)


def wrapped(text: str, indent: str) -> str:
    """Text as an indented block that fits the terminal."""
    return textwrap.fill(
        printable(text), width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def block(text: str, indent: str) -> str:
    """Text line by line, as code and tables need it; only lines that do not fit the terminal are wrapped."""
    shown = []
    for line in printable(text).expandtabs(4).split("\n"):
        margin = indent + line[: len(line) - len(line.lstrip())]
        if _cells(indent + line) <= width():
            shown.append((indent + line).rstrip())
        else:
            shown.append(
                textwrap.fill(
                    line.strip(), width(), initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
                )
            )
    return "\n".join(shown)


def counted(count: int, noun: str) -> str:
    """A count in words: "1 link", "2 links", "3 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


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
