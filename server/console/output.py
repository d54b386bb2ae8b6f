"""Writes to standard output: a JSON document, or text wrapped to the terminal. Lines for a pipe are not wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TextIO

import click

from speckit_memory.errors.names import displayable_name, sendable
from speckit_memory.server.console import standard_streams, terminal

MAX_WIDTH = 120
"""Cells; longer lines of prose are hard to read, even on a wider terminal."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tabs and newlines, and bidirectional controls."""


def print_json(document: Any) -> None:
    """Prints one JSON document, indented."""
    with standard_streams.given_to_a_document():
        click.echo(json.dumps(sendable(document), ensure_ascii=False, indent=2))


def printable(text: str) -> str:
    """Escapes control characters, so that file names and documents cannot control the terminal."""
    return _CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], displayable_name(text))


def wrap_text(text: str, indent: str = "", first: str | None = None, stream: TextIO | None = None, **style: Any) -> str:
    """Wraps a text to an indented block that fits the terminal; without a terminal it stays on one line.

    Args:
        text: The text; control characters are escaped and blanks collapsed.
        indent: Put before every line.
        first: Put before the first line instead of `indent`; keeps its styles.
        stream: The stream whose terminal decides the width; standard output by default.
        style: Arguments for `click.style`.
    """
    from speckit_memory.server.console.terminal import fold

    first = indent if first is None else first
    text = " ".join(printable(text).split())
    room = terminal.columns(stream)
    if room is None:
        lines = [text]
    else:
        inner = min(room, MAX_WIDTH) - len(indent)
        # wrapped before styling, since escape sequences have no width
        lines = fold(text, max(inner, terminal.LEAST_COLUMNS // 2), len(click.unstyle(first)) - len(indent))
    starts = [first, *[indent] * len(lines)]
    styled = [click.style(line, **style) if style and line else line for line in lines]
    return "\n".join((start + line).rstrip() for start, line in zip(starts, styled, strict=False))


def block(text: str, indent: str) -> str:
    """Indents a text line by line, as for code and tables; only lines wider than the terminal are wrapped."""
    from speckit_memory.server.console.terminal import cells

    room = terminal.columns()
    shown = []
    for line in printable(text).expandtabs(4).split("\n"):
        margin = indent + line[: len(line) - len(line.lstrip())]
        fits = room is None or cells(indent + line) <= min(room, MAX_WIDTH)
        shown.append((indent + line).rstrip() if fits else wrap_text(line, margin))
    return "\n".join(shown)


def beginning(text: str, indent: str) -> str:
    """The beginning of a text without Markdown headings, on one line, cut to the width of the terminal."""
    from speckit_memory.server.console.terminal import fold

    lines = [line for line in printable(text).split("\n") if not line.startswith("#")]
    words = " ".join(" ".join(lines).split() or printable(text).split())
    first, *more = fold(words, min(terminal.columns() or MAX_WIDTH, MAX_WIDTH) - len(indent) - 2)
    return f"{indent}{first}{' …' if more else ''}"


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "", headed: bool = False) -> str:
    """Renders rows with aligned columns. Too wide tables are wrapped or split, see `tables`; nothing is left out.

    Args:
        rows: The cells, which may be styled.
        right: Numbers (from 0) of the columns aligned to the right.
        indent: Put before every line.
        headed: Whether the first row has the names of the columns.
    """
    return "\n".join(table_rows(rows, right=right, indent=indent, headed=headed))


def table_rows(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "", headed: bool = False
) -> list[str]:
    """Renders a table as `table` does, and returns one text per row, of one or more lines.

    Args:
        rows: The cells, which may be styled.
        right: Numbers (from 0) of the columns aligned to the right.
        indent: Put before every line.
        headed: Whether the first row has the names of the columns.
    """
    from speckit_memory.server.console.tables import GAP, align_rows, fit_rows, widths

    if not rows:
        return []
    room, natural = terminal.columns(), widths(rows)
    if room is None or sum(natural) + GAP * (len(natural) - 1) + len(indent) <= room:
        shown = align_rows(rows, natural, right)
    else:
        shown = fit_rows(rows, right, room - len(indent), headed)
    return ["\n".join((indent + line).rstrip() for line in row.split("\n")) for row in shown]
