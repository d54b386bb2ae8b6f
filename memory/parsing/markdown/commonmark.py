"""Parses the block structure of Markdown (CommonMark with tables), which titles, passages, anchors and edits rely on.

Tests compare it with a full parser. It reads line by line, in time linear in the text and memory for one block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from speckit_memory.memory.parsing.markdown.html_blocks import HTML, HTML_END

LeafKind = Literal["heading", "fence", "table", "code", "html", "paragraph", "other"]
"""`code` is indented code; `other` is a thematic break or the marker of a container without text."""

LONGEST_HEADING = 4000
"""Characters read of a heading."""
LONGEST_DELIMITER = 20_000
"""Characters of a table's delimiter row. A wider table counts as text: it could not stay whole anyway."""
_MISSING_CELLS = 65_536
"""Limit on the cells missing from all rows of a table together; the row that exceeds it ends the table."""
MOST_NESTED = 100
"""Depth of nested quotations and list items; markers beyond it are text."""

_TRIMMED = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_PLAIN = re.compile(r"(?:(?:[^\W\d_]|\d{1,9}(?![\d.)]))[^\n]*+(?:\n|\Z))++(?=[ \t]*+(?:\n|\Z))")
"""A paragraph that ends with a blank line and whose lines all begin with a letter, or a number that starts no list
item. It is read in one step, since most texts consist of little else."""
_BLANKS = re.compile(r"[ \t\n]*")
_HEADING = re.compile(r"(#{1,6})(?=[ \t\n]|\Z)")
_FENCE = re.compile(r"(`{3,}+(?=[^`\n]*(?:\n|\Z))|~{3,}+)")
_FENCE_END = {sign: re.compile(rf"^ {{0,3}}({sign}{{3,}}+)[ \t]*$", re.MULTILINE) for sign in "`~"}
_FENCE_CLOSED = {sign: re.compile(rf"({sign}{{3,}}+)[ \t]*(?:\n|\Z)") for sign in "`~"}
_UNDERLINE = re.compile(r"(?:(=++)|-++)[ \t]*+(?:\n|\Z)")
_BREAK = re.compile(r"([-*_])[ \t]*+(?:\1[ \t]*+){2,}+(?:\n|\Z)")
_ITEM = re.compile(r"(?:[-+*]|(\d{1,9})[.)])(?=[ \t\n]|\Z)")
_DELIMITER = re.compile(r"([|:]|-(?![ \t]))[-:|\t ]++(?:\n|\Z)")
_ALIGNMENT = re.compile(r":?-+:?")

_TITLE = r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)"
_REFERENCE = re.compile(
    r"[ \t]*+\[(?=[^\]]*[^\]\s])(?:[^\[\]\\]|\\.){1,999}+\]:[ \t]*+\n?[ \t]*+"
    r"(?:<(?:[^<>\\\n]|\\.)*+>|(?!<)[^\s\x00-\x1f]++)"
    rf"(?:(?:[ \t]++|[ \t]*+\n[ \t]*+)(?:{_TITLE})[ \t]*+(?:\n|\Z)|[ \t]*+(?:\n|\Z))",
    re.DOTALL,
)
"""A link reference definition at the beginning of a paragraph, which is not rendered."""


@dataclass(frozen=True, slots=True)
class LeafBlock:
    """A block that contains no other blocks, as offsets of whole lines. `depth` counts the quotations and list items
    around it. `form` is the kind of HTML, or the characters that open fenced code."""

    kind: LeafKind
    start: int
    end: int
    depth: int = 0
    level: int = 0
    heading: str = ""
    form: str = ""


def leaves(text: str) -> Iterator[LeafBlock]:
    """Yield the leaf blocks in order, including those in quotations and lists. Only blanks lie between two of them.
    Line ends must be "\\n"."""
    return _Reader(text).leaves()


class _Container:
    """An open quotation or list item; `indent` is the indentation of its lines in columns, 0 for a quotation."""

    __slots__ = ("empty", "indent")

    def __init__(self, indent: int, *, empty: bool = False) -> None:
        self.indent = indent
        self.empty = empty
        """Whether the item has no content yet: a blank line then ends it."""


class _Reader:
    """Reads a text line by line. `kind` is the kind of the open leaf, "" for none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.containers: list[_Container] = []
        self.done: list[LeafBlock] = []
        self.kind: LeafKind | Literal[""] = ""
        self.start = self.stop = 0
        self.form = ""
        """The kind of HTML, or the characters that open fenced code."""
        self.missing = self.columns = 0
        """Of a table: the cells missing from its rows, and the cells of its head."""
        self.last_line = self.last_sign = 0
        """Offsets of a paragraph's last line and of its text, -1 if that is indented as code."""
        # Position in the line: column (of what was read), width of the blanks after it, offset of the next character.
        self.column = self.indent = self.sign = 0

    def leaves(self) -> Iterator[LeafBlock]:
        """Yield all leaves."""
        text, size = self.text, len(self.text)
        at = 0
        while at < size:
            line = _next_line_with_text(text, at)
            if line > at:
                if self.kind or self.containers:
                    self._blank_lines()
                at = line
            if at < size:
                if not (self.kind or self.containers) and (plain := _PLAIN.match(text, at)):
                    yield from self.done
                    self.done.clear()
                    yield LeafBlock("paragraph", at, plain.end())
                    at = plain.end()
                    continue
                end = _line_end(text, at)
                if not self.containers and self.kind in ("", "paragraph") and text[at].isalpha():
                    if not self.kind:  # fast path for most lines
                        self._open("paragraph", at, end)
                    self.last_line = self.last_sign = at
                    self.stop = at = end
                    continue
                at = self._line(at, end)
            yield from self.done
            self.done.clear()
        self._close()
        yield from self.done

    def _blank_lines(self) -> None:
        for depth, container in enumerate(self.containers):
            if container.empty or not container.indent:
                self._leave(depth)
                return
        if self.kind not in ("fence", "code") and not (self.kind == "html" and self.form in HTML_END):
            self._close()

    def _line(self, start: int, end: int) -> int:
        """Read a line that is not blank; return the offset of the next line to read."""
        depth = self._enter(start, end)
        # A paragraph may continue on a line without the markers of its containers (lazy continuation).
        if depth < len(self.containers) and self.kind != "paragraph":
            self._leave(depth)
        if depth == len(self.containers) and self._continued(end):
            return self.stop
        if self._at_end(end):  # only container markers
            self._leave(depth)
            self._close()
            self.done.append(LeafBlock("other", start, end, depth))
            return end
        return self._begun(start, end, depth)

    def _enter(self, start: int, end: int) -> int:
        """Read the markers of the open containers; return how many of them continue."""
        self._look(start, 0, end)
        for depth, container in enumerate(self.containers):
            if not container.indent:
                if self.indent > 3 or not self.text.startswith(">", self.sign):
                    return depth
                self._pass_quotation_mark(end)
            elif self._at_end(end):
                if container.empty:
                    return depth
            elif self.indent < container.indent:
                return depth
            else:
                self._indented_by(container.indent)
        return len(self.containers)

    def _continued(self, end: int) -> bool:
        """Whether the line continues the open code or HTML block, which it extends or closes."""
        blank = self._at_end(end)
        if self.kind == "fence":
            sign = self.form[0]
            closing = _FENCE_CLOSED[sign].match(self.text, self.sign, end) if self.indent < 4 else None
            self.stop = end
            if closing and len(closing[1]) >= len(self.form):
                self._close()
            return True
        if self.kind == "html":
            if blank and self.form not in HTML_END:
                return False
            self.stop = end
            if self.form in HTML_END and HTML_END[self.form].search(self.text, self.sign, end):
                self._close()
            return True
        if self.kind == "code":
            if blank or self.indent > 3:
                self.stop = end
                return True
            self._close()
        return False

    def _begun(self, start: int, end: int, depth: int) -> int:
        """Read the containers and the block that begin in this line; return the offset of the next line."""
        text = self.text
        goes_on = self.kind == "paragraph" and depth == len(self.containers)
        # Block starts are tried in CommonMark's order of precedence. Containers loop, since they may nest on a line.
        if goes_on and self._tabulated(end):
            return end
        while self.indent < 4:
            sign = text[self.sign]
            if sign == ">" and depth < MOST_NESTED:
                self._enclose(depth, _Container(0))
                self._pass_quotation_mark(end)
            elif sign == "#" and (heading := _HEADING.match(text, self.sign, end)):
                self._leave(depth)
                self._open("heading", start, end)
                self._close(level=len(heading[1]), heading=_without_tail(text[heading.end() : end]))
                return end
            elif sign in "`~" and (fence := _FENCE.match(text, self.sign, end)):
                self._leave(depth)
                self._open("fence", start, end, fence[1])
                return end if depth else self._end_of_fence(end)
            elif (
                sign == "<"
                and (html := HTML.match(text, self.sign, end))
                and not (html["tag"] and self.kind in ("paragraph", "table"))
            ):
                self._leave(depth)
                self._open("html", start, end, str(html.lastgroup))
                ending = HTML_END.get(self.form)
                if ending and ending.search(text, self.sign, end):
                    self._close()
                return end
            elif (
                goes_on
                and sign in "=-"
                and (line := _UNDERLINE.match(text, self.sign, end))
                and self._titled(1 if line[1] else 2, start, end)
            ):
                return end
            elif sign in "-*_" and _BREAK.match(text, self.sign, end):
                self._leave(depth)
                self._open("other", start, end)
                self._close()
                return end
            elif (
                depth < MOST_NESTED
                and (item := _ITEM.match(text, self.sign, end))
                # Only a non-empty bullet item, or an ordered one numbered 1, can interrupt a paragraph.
                and not (goes_on and (not text[item.end() : end].strip(" \t\n") or int(item[1] or 1) != 1))
            ):
                self._begin_item(depth, item.end() - self.sign, end)
            else:
                break
            goes_on = False
            depth += 1
            if self._at_end(end):
                self.done.append(LeafBlock("other", start, end, depth))
                return end
        if self.kind == "paragraph":
            self.last_line, self.last_sign, self.stop = start, self.sign if self.indent < 4 else -1, end
        elif self.indent > 3:
            self._leave(depth)
            self._open("code", start, end)
        elif self.kind == "table" and self._row(start, end):
            self.stop = end
        else:
            self._leave(depth)
            self._open("paragraph", start, end)
            self.last_line, self.last_sign = start, self.sign
        return end

    def _tabulated(self, end: int) -> bool:
        """Turn the last line of the open paragraph into a table head if the current line is a delimiter row."""
        near = self.indent < 4 and self.last_sign >= 0
        delimiter = _DELIMITER.match(self.text, self.sign, end) if near else None
        self.columns = _columns(delimiter, self.text[self.last_sign : self.stop]) if delimiter else 0
        if self.columns:
            self.stop = self.last_line
            if self.start == self.stop:
                self.kind = ""
            self._open("table", self.last_line, end)
            self.missing = 0
        return self.columns > 0

    def _row(self, start: int, end: int) -> bool:
        row = self.text[start:end].strip(_TRIMMED)
        self.missing += self.columns - _cells(row)
        return bool(row) and self.missing <= _MISSING_CELLS

    def _titled(self, level: int, start: int, end: int) -> bool:
        """Turn the open paragraph into a heading, unless it holds only link reference definitions."""
        text, began = self.text, self.start
        # Leading link reference definitions are not part of the heading.
        while definition := _REFERENCE.match(text, began, start):
            began = definition.end()
        if began >= start:
            return False
        if began > self.start:
            self.done.append(LeafBlock("paragraph", self.start, began, len(self.containers)))
        self.kind, self.start, self.stop = "heading", began, end
        self._close(level=level, heading=text[began : min(start, began + LONGEST_HEADING)].strip(_TRIMMED))
        return True

    def _begin_item(self, depth: int, width: int, end: int) -> None:
        outer = self.indent
        self._pass(width, end)
        blank = self._at_end(end)
        inner = 1 if blank or self.indent > 4 else self.indent
        # Content of the item starts at this column; more than 4 blanks after the marker are indented code.
        self._enclose(depth, _Container(outer + width + inner, empty=blank))
        self._indented_by(inner)

    def _enclose(self, depth: int, container: _Container) -> None:
        self._leave(depth)
        self._close()
        self._fill()
        self.containers.append(container)

    def _pass_quotation_mark(self, end: int) -> None:
        self._pass(1, end)
        self._indented_by(1)

    def _pass(self, width: int, end: int) -> None:
        """Skip a marker of `width` characters, then the blanks after it."""
        self._look(self.sign + width, self.column + self.indent + width, end)

    def _indented_by(self, columns: int) -> None:
        """Consume up to `columns` columns of blanks; a tab may be consumed partly."""
        passed = min(columns, self.indent)
        self.column += passed
        self.indent -= passed

    def _look(self, at: int, column: int, end: int) -> None:
        """Find the first non-blank character from `at`, which is in column `column`, and the width of the blanks."""
        text, self.column = self.text, column
        while at < end and (sign := text[at]) in " \t":
            column += 4 - column % 4 if sign == "\t" else 1
            at += 1
        self.sign, self.indent = at, column - self.column

    def _at_end(self, end: int) -> bool:
        return self.sign == end or self.text[self.sign] == "\n"

    def _leave(self, depth: int) -> None:
        """Close the containers from a depth on, and the leaf in them."""
        if depth < len(self.containers):
            self._close()
            del self.containers[depth:]

    def _fill(self) -> None:
        if self.containers:
            self.containers[-1].empty = False

    def _open(self, kind: LeafKind, start: int, end: int, form: str = "") -> None:
        self._close()
        self._fill()
        self.kind, self.start, self.stop, self.form = kind, start, end, form

    def _close(self, *, level: int = 0, heading: str = "") -> None:
        if self.kind:
            depth = len(self.containers)
            self.done.append(LeafBlock(self.kind, self.start, self.stop, depth, level, heading, self.form))
            self.kind = ""

    def _end_of_fence(self, at: int) -> int:
        for closing in _FENCE_END[self.form[0]].finditer(self.text, at):
            if len(closing[1]) >= len(self.form):
                self.stop = min(closing.end() + 1, len(self.text))
                self._close()
                return self.stop
        self.stop = len(self.text)
        return self.stop


def _without_tail(heading: str) -> str:
    """Return the text of a heading without its closing number signs."""
    heading = heading.rstrip(" \t\n")
    opened = heading.rstrip("#")
    return (opened if opened.endswith((" ", "\t")) else heading).strip(_TRIMMED)[:LONGEST_HEADING].rstrip(_TRIMMED)


def _columns(delimiter: re.Match[str], head: str) -> int:
    """Return the number of columns that a delimiter row declares, 0 if the head has a different number."""
    if "|" not in head or len(delimiter[0]) > LONGEST_DELIMITER:
        return 0
    cells = [cell.strip(" \t") for cell in delimiter[0].strip(" \t\n").split("|")]
    named = [cell for cell in cells if cell]
    if not all(cells[1:-1]) or not all(map(_ALIGNMENT.fullmatch, named)):
        return 0
    return len(named) if len(named) == _cells(head.strip(_TRIMMED)) else 0


def _cells(row: str) -> int:
    """Return the number of cells of a row; a bar after a backslash does not separate cells."""
    # n bars separate n + 1 cells; optional bars at the start and the end do not separate cells.
    cells = row.count("|") - row.count("\\|") + 1
    cells -= row.startswith("|")
    return cells - (cells > 0 and row.endswith("|") and not row.endswith("\\|"))


def _line_end(text: str, at: int) -> int:
    """Return the offset after the line that contains `at`."""
    return text.find("\n", at) + 1 or len(text)


def _next_line_with_text(text: str, at: int) -> int:
    """Return the offset of the first non-blank line from `at` (a line start), or the end of the text."""
    blanks = _BLANKS.match(text, at)
    end = blanks.end() if blanks else at
    return end if end == len(text) else text.rfind("\n", at, end) + 1 or at
