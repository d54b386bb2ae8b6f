"""The text of a page as it is read from top to bottom, written down as Markdown (feature I1)."""

from __future__ import annotations

import re

from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.markdown.html_blocks import opens_html

MOST_NESTED = 12
"""Lists within lists that are indented; deeper ones stand where the last of these does."""
LONGEST_NAME = 100
"""Characters of an id that names a section."""

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


class Page:
    """Takes tags and words in their order; lines are those of the file, from 1."""

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
        """Text as it stands between two tags, its characters decoded."""
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
        """A tag that begins an element."""
        if self._pre is not None:
            if name == "br":
                self._pre.append("\n")
            return
        if self._title is not None:  # it was never closed
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
        """A tag that ends one. An end without a beginning ends what is open, if it is of its kind."""
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
        """What was read. Elements that are still open end here."""
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
            self._now += " " * bool(self._now)  # paragraphs of a cell stay in it
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
        """A beginning or an end of code within a line."""
        if not self._heading:
            self._begun = self._begun if self._now else line
            self._now.append("`")

    def _said(self) -> str:
        """The words since the last end of a line, which are taken away; without marks of code that stand around
        nothing, or whose other half is missing."""
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
        """Writes down the words since the last end of a line."""
        said = self._said()
        if not said:
            return
        if self._heading:
            self._begin_section()
            self._blank()
            self._lines.append((f"{'#' * self._heading} {said}", self._begun))
            self._heading = 0
            return
        if _BEGINS_BLOCK.match(said) or opens_html(said):  # in Markdown alone
            said = "\\" + said
        depth = min(len(self._lists), MOST_NESTED)
        indent = "  " * (depth - 1) if depth else ""
        self._lines.append((f"{indent}{self._item or ('  ' if depth else '')}{said}", self._begun))
        self._item = ""
        self._id = ""

    def _begin_section(self) -> None:
        """The section of a heading with an id, or in an element with one, up to the next heading of its level."""
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
