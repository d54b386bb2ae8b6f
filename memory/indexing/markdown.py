"""The outline of a Markdown text: where its blocks begin, and which of them are headings or must stay whole.

The rules are those of CommonMark with tables, of which only top-level blocks matter here; tests hold them against a
full parser. Reading line by line takes time in proportion to the text and memory for one line, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["heading", "whole", "text"]
"""`whole`: fenced code and tables, which lose their meaning when they are cut."""

LONGEST_HEADING = 4000
"""Characters of a heading that are looked at."""
LONGEST_DELIMITER = 20_000
"""Characters of the line below the head of a table. A wider table is text: it could not stay whole anyway."""
_MISSING_CELLS = 65_536
"""So many cells may the rows of a table lack altogether; the row that lacks more ends it."""

_TRIMMED = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_BLANKS = re.compile(r"[ \t\n]*")
_CODE = re.compile(r" {0,3}\t| {4}")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t\n]|\Z)")
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`\n]*(?:\n|\Z))|~{3,}+)")
_FENCE_END = {sign: re.compile(rf"^ {{0,3}}({sign}{{3,}}+)[ \t]*$", re.MULTILINE) for sign in "`~"}
_UNDERLINE = re.compile(r" {0,3}(?:(=++)|-++)[ \t]*+(?:\n|\Z)")
_DELIMITER = re.compile(r" {0,3}([|:]|-(?![ \t]))[-:|\t ]++(?:\n|\Z)")
_ALIGNMENT = re.compile(r":?-+:?")


@dataclass(frozen=True, slots=True)
class Block:
    """A block from the offset `start` to the next block. `level` (1 to 6) and `heading` belong to headings."""

    start: int
    kind: Kind = "text"
    level: int = 0
    heading: str = ""


def blocks(text: str) -> Iterator[Block]:
    """The top-level blocks in order; they tile the text: the first begins at 0, each ends where the next begins.

    Lists and quotations are not opened: their paragraphs are blocks of the text, which is all that finding borders
    needs. Line ends must be "\\n".
    """
    at = _next_line_with_text(text, 0)
    if at or not text:
        yield Block(0)
    while at < len(text):
        block, end = _block(text, at)
        yield block
        at = _next_line_with_text(text, end)


def _block(text: str, start: int) -> tuple[Block, int]:
    """The block that begins in the line at `start`, which is not blank, and the offset of the line behind it."""
    end = _line_end(text, start)
    if _CODE.match(text, start):
        return Block(start), _end_of_code(text, end)
    if columns := _columns(text, start, end):
        return Block(start, "whole"), _end_of_table(text, _line_end(text, end), columns)
    if fence := _FENCE.match(text, start):
        return Block(start, "whole"), _end_of_fence(text, end, fence[1])
    if heading := _HEADING.match(text, start):
        return Block(start, "heading", len(heading[1]), _without_tail(text[heading.end() : end])), end
    return _paragraph(text, start, end)


def _paragraph(text: str, start: int, at: int) -> tuple[Block, int]:
    """A paragraph, or the heading that a line of = or - below it makes of it."""
    while at < len(text) and _next_line_with_text(text, at) == at:
        end = _line_end(text, at)
        if not text[at].isalnum():
            if _CODE.match(text, at):  # it goes on with the paragraph, whatever it looks like
                at = end
                continue
            if line := _UNDERLINE.match(text, at):
                heading = text[start : min(at, start + LONGEST_HEADING)].strip(_TRIMMED)
                return Block(start, "heading", 1 if line[1] else 2, heading), end
            if _FENCE.match(text, at) or _HEADING.match(text, at):
                break
        if _columns(text, at, end):
            break
        at = end
    return Block(start), at


def _without_tail(heading: str) -> str:
    """The text of a heading without the number signs that may close it."""
    heading = heading[:LONGEST_HEADING].rstrip(" \t\n")
    opened = heading.rstrip("#")
    return (opened if opened.endswith((" ", "\t")) else heading).strip(_TRIMMED)


def _columns(text: str, start: int, end: int) -> int:
    """The number of columns of the table whose head is the line from `start` to `end`, 0 when there is no table."""
    if text.find("|", start, end) < 0:
        return 0
    delimiter = _DELIMITER.match(text, end)
    if not delimiter or delimiter.end() - end > LONGEST_DELIMITER:
        return 0
    cells = [cell.strip(" \t") for cell in delimiter[0].strip(" \t\n").split("|")]
    named = [cell for cell in cells if cell]
    if not all(cells[1:-1]) or not all(map(_ALIGNMENT.fullmatch, named)):
        return 0
    return len(named) if len(named) == _cells(text[start:end].strip(_TRIMMED)) else 0


def _cells(row: str) -> int:
    """The number of cells of a row: those between bars that no backslash stands before."""
    cells = row.count("|") - row.count("\\|") + 1
    cells -= row.startswith("|")
    return cells - (cells > 0 and row.endswith("|") and not row.endswith("\\|"))


def _end_of_table(text: str, at: int, columns: int) -> int:
    missing = 0
    while at < len(text):
        end = _line_end(text, at)
        row = text[at:end].strip(_TRIMMED)
        missing += columns - _cells(row)
        ends = not row or missing > _MISSING_CELLS
        if ends or _CODE.match(text, at) or _FENCE.match(text, at) or _HEADING.match(text, at):
            break
        at = end
    return at


def _end_of_fence(text: str, at: int, opening: str) -> int:
    for closing in _FENCE_END[opening[0]].finditer(text, at):
        if len(closing[1]) >= len(opening):
            return closing.end() + 1
    return len(text)


def _end_of_code(text: str, at: int) -> int:
    while _CODE.match(text, at := _next_line_with_text(text, at)):
        at = _line_end(text, at)
    return at


def _line_end(text: str, at: int) -> int:
    """The offset behind the line that an offset lies in."""
    return text.find("\n", at) + 1 or len(text)


def _next_line_with_text(text: str, at: int) -> int:
    """The offset of the first line from `at` on, where a line begins, that is not blank; the end when there is none."""
    blanks = _BLANKS.match(text, at)
    end = blanks.end() if blanks else at
    return end if end == len(text) else text.rfind("\n", at, end) + 1 or at
