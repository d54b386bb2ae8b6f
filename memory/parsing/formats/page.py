"""Writes the text of an HTML page as Markdown, from a stream of tags and words (feature I1)."""

from __future__ import annotations

import re

from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.markdown.html_blocks import opens_html

MOST_NESTED = 12
"""Depth of nested lists up to which they are indented further."""
LONGEST_NAME = 100
"""Characters of an id that can name a section."""

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form
    frameset header hgroup hr html legend li main menu nav ol p pre section summary table tbody tfoot thead tr ul
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_-]*")
_BLANKS = re.compile(r"\s+")
_BACKTICKS = re.compile(r"`{3,}")
_BEGINS_BLOCK = re.compile(r"(?=#{1,6}(?:\s|$)|`{3}|~{3}|=+\s*$|-+\s*$)")


class PageBuilder:
    """Builds Markdown from tags and words given in document order; lines are those of the file, counted from 1."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, int]] = []
        self._now: list[str] = []
        self._begun = 0
        self._lists: list[str] = []
        self._item = ""
        self._heading = 0
        self._id = ""
        self._pre: list[str] | None = None
        self._pre_line = 0
        self._row: list[str] | None = None
        self._rows = 0
        self._cell = 0
        self._title: list[str] | None = None
        self._titles: list[str] = []
        self._description = ""
        self._names: set[str] = set()
        self._open: list[tuple[int, str]] = []

    def words(self, text: str, line: int) -> None:
        """Add text between two tags, with decoded character references."""
        if self._title is not None:
            self._title.append(text)
        elif self._pre is not None:
            self._pre.append(text)
        elif said := _BLANKS.sub(" ", text):
            if said == " " and not self._now:
                return
            if not self._now:
                said = said.lstrip()
                self._begun = line + text[: len(text) - len(text.lstrip())].count("\n")
            self._now.append(said)

    def begin(self, name: str, attributes: dict[str, str], line: int) -> None:
        """Process a start tag."""
        if self._pre is not None:
            if name == "br":
                self._pre.append("\n")
            return
        if self._title is not None:  # the title was never closed
            self._end_title()
        if name == "title" and not self._titles:
            self._title = []
        elif name == "meta":
            if attributes.get("name", "").lower() == "description" and not self._description:
                self._description = " ".join(attributes.get("content", "").split())
        elif name in _HEADINGS:
            self._end_block()
            self._heading = _HEADINGS[name]
            self._id = attributes.get("id") or self._id
        elif name == "br":
            self._end_line()
        elif name in ("td", "th"):
            self._end_cell()
        elif name in _CODE:
            self._mark(line)
        elif name in _BLOCKS:
            self._begin_block(name, attributes, line)
        elif name in ("span", "a") and not self._now and attributes.get("id"):
            self._id = attributes["id"]

    def end(self, name: str) -> None:
        """Process an end tag. Without a matching start tag it ends an open element of the same kind."""
        if self._pre is not None:
            if name == "pre":
                self._end_pre()
        elif name == "title" and self._title is not None:
            self._end_title()
        elif name in _HEADINGS:
            self._end_block()
        elif name in ("td", "th"):
            self._end_cell()
        elif name == "tr":
            self._end_row()
        elif name in _CODE:
            self._mark(self._begun)
        elif name in _BLOCKS:
            self._end_block()
            if name in _LISTS and self._lists:
                self._lists.pop()
            if name == "table":
                self._end_row()
                self._row, self._rows = None, 0
                self._blank()

    def readable(self) -> Readable:
        """Return the result, ending all open elements."""
        if self._pre is not None:
            self._end_pre()
        self._end_row()
        self._end_block()
        while self._open:
            self._close_section()
        if self._title is not None:
            self._end_title()
        while self._lines and not self._lines[-1][0]:
            self._lines.pop()
        return Readable(
            "\n".join(text for text, _ in self._lines),
            self._titles[0] if self._titles else "",
            self._description,
            tuple(line for _, line in self._lines),
        )

    def _begin_block(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self._row is not None and name not in ("table", "tr", "tbody", "thead", "tfoot"):
            self._now += " " * bool(self._now)  # paragraphs in a cell stay in the cell
            return
        self._end_block()
        if attributes.get("id"):
            self._id = attributes["id"]
        if name == "pre":
            self._pre, self._pre_line = [], line
        elif name in _LISTS:
            self._lists.append(name)
        elif name == "li":
            self._item = "1. " if self._lists and self._lists[-1] == "ol" else "- "
        elif name == "table":
            self._rows = 0
        elif name == "tr":
            self._end_row()
            self._row = []
        elif name == "hr":
            self._blank()

    def _mark(self, line: int) -> None:
        """Add the start or the end of a code span."""
        if not self._heading:
            self._begun = self._begun if self._now else line
            self._now.append("`")

    def _said(self) -> str:
        """Take the words since the last line end, without empty or unbalanced code markers."""
        said, self._now = "".join(self._now).strip(), []
        if "`" in said:
            said = said.replace("``", "")
            said = said.replace("`", "") if said.count("`") % 2 else said
        return said

    def _end_title(self) -> None:
        self._titles.append(" ".join("".join(self._title or ()).split()))
        self._title = None

    def _end_line(self) -> None:
        if self._row is not None or self._heading:
            self._now.append(" ")
        else:
            self._write()

    def _end_block(self) -> None:
        if self._row is None:
            self._write()
            if not self._lists:
                self._blank()

    def _write(self) -> None:
        """Write the words since the last line end."""
        said = self._said()
        if not said:
            return
        if self._heading:
            self._begin_section()
            self._blank()
            self._lines.append((f"{'#' * self._heading} {said}", self._begun))
            self._heading = 0
            return
        if _BEGINS_BLOCK.match(said) or opens_html(said):  # plain text on the page, markup in Markdown
            said = "\\" + said
        depth = min(len(self._lists), MOST_NESTED)
        indent = "  " * (depth - 1) if depth else ""
        self._lines.append((f"{indent}{self._item or ('  ' if depth else '')}{said}", self._begun))
        self._item = ""
        self._id = ""

    def _begin_section(self) -> None:
        """Open a section for a heading with an id, or in an element with one, up to the next heading of its level."""
        # A heading closes the sections of its level and of lower ones.
        while self._open and self._open[-1][0] >= self._heading:
            self._close_section()
        name, self._id = self._id, ""
        if _ID.fullmatch(name) and len(name) <= LONGEST_NAME and name not in self._names:
            self._names.add(name)
            self._blank()
            self._lines.append((f"<!-- ANCHOR:{name} -->", self._begun))
            self._open.append((self._heading, name))

    def _close_section(self) -> None:
        _, name = self._open.pop()
        self._lines.append((f"<!-- /ANCHOR:{name} -->", self._lines[-1][1] if self._lines else 1))

    def _end_pre(self) -> None:
        text, self._pre = "".join(self._pre or ()), None
        first = self._pre_line
        if text.startswith("\n"):
            text, first = text[1:], first + 1
        text = text.rstrip()
        if text:
            # The fence must be longer than any run of backticks in the text.
            longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
            fence = "`" * (longest + 1)
            self._blank()
            self._lines.append((fence, first))
            self._lines += ((each, first + number) for number, each in enumerate(text.split("\n")))
            self._lines.append((fence, self._lines[-1][1]))
            self._blank()

    def _end_cell(self) -> None:
        if self._row is not None and (said := self._said()):
            if not self._row:
                self._cell = self._begun
            self._row.append(said.replace("|", "\\|"))

    def _end_row(self) -> None:
        self._end_cell()
        if self._row:
            if not self._rows:
                self._blank()
            self._lines.append((f"| {' | '.join(self._row)} |", self._cell))
            if not self._rows:
                self._lines.append((f"|{' --- |' * len(self._row)}", self._cell))
            self._rows += 1
        if self._row is not None:
            self._row = []

    def _blank(self) -> None:
        if self._lines and self._lines[-1][0]:
            self._lines.append(("", self._lines[-1][1]))
