"""Writing to standard output: one JSON document, or text that fits the terminal. A pipe gets its lines unbroken."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TextIO

import click

from speckit_memory.errors.names import sendable, shown
from speckit_memory.server.console import standard_streams, terminal

MAX_WIDTH = 120
"""Cells; longer lines of prose are hard to read, however wide the terminal is."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and the marks that turn the direction of text, all but tabs and line ends."""


def print_json(document: Any) -> None:
    """One document, readable and stable."""
    with standard_streams.given_to_a_document():
        click.echo(json.dumps(sendable(document), ensure_ascii=False, indent=2))


def printable(text: str) -> str:
    """Text whose control characters are spelled out, so that no file name or document can command the terminal."""
    return _CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], shown(text))


def wrapped(text: str, indent: str = "", first: str | None = None, stream: TextIO | None = None, **style: Any) -> str:
    """Text as one indented block that fits the terminal behind `stream` (standard output); without one in one line.

    `first` stands before it in place of the first indent, and keeps the styles it has. `style` is click's.
    """
    from speckit_memory.server.console.folding import fold

    first = indent if first is None else first
    text = " ".join(printable(text).split())
    room = terminal.columns(stream)
    if room is None:
        lines = [text]
    else:
        inner = min(room, MAX_WIDTH) - len(indent)
        lines = fold(text, max(inner, terminal.LEAST_COLUMNS // 2), len(click.unstyle(first)) - len(indent))
    starts = [first, *[indent] * len(lines)]
    styled = [click.style(line, **style) if style and line else line for line in lines]
    return "\n".join((start + line).rstrip() for start, line in zip(starts, styled, strict=False))


def block(text: str, indent: str) -> str:
    """Text line by line, as code and tables need it; only lines that do not fit the terminal are wrapped."""
    from speckit_memory.server.console.folding import cells

    room = terminal.columns()
    shown = []
    for line in printable(text).expandtabs(4).split("\n"):
        margin = indent + line[: len(line) - len(line.lstrip())]
        fits = room is None or cells(indent + line) <= min(room, MAX_WIDTH)
        shown.append((indent + line).rstrip() if fits else wrapped(line, margin))
    return "\n".join(shown)


def beginning(text: str, indent: str) -> str:
    """One line of a text without its Markdown headings, cut where the terminal, or a line of prose, ends."""
    from speckit_memory.server.console.folding import fold

    lines = [line for line in printable(text).split("\n") if not line.startswith("#")]
    words = " ".join(" ".join(lines).split() or printable(text).split())
    first, *more = fold(words, min(terminal.columns() or MAX_WIDTH, MAX_WIDTH) - len(indent) - 2)
    return f"{indent}{first}{' …' if more else ''}"


def counted(count: int, noun: str) -> str:
    """A count in words: "1 link", "2 links", "3 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "", headed: bool = False) -> str:
    """Rows with aligned columns; the columns named in `right` (from 0) are aligned to the right.

    What is wider than the terminal is wrapped or split, see `tables`; nothing is ever left out. `headed` marks the
    first row as the names of the columns. The cells may be styled.
    """
    return "\n".join(table_rows(rows, right=right, indent=indent, headed=headed))


def table_rows(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "", headed: bool = False
) -> list[str]:
    """The same, each row apart: a text of one or several lines."""
    from speckit_memory.server.console.tables import GAP, aligned, fitted, widths

    if not rows:
        return []
    room, natural = terminal.columns(), widths(rows)
    if room is None or sum(natural) + GAP * (len(natural) - 1) + len(indent) <= room:
        shown = aligned(rows, natural, right)
    else:
        shown = fitted(rows, right, room - len(indent), headed)
    return ["\n".join((indent + line).rstrip() for line in row.split("\n")) for row in shown]
