"""Parses the outline of a reStructuredText document: titles, labels, and blocks that must stay whole.

Blocks at the left margin are classified by their first lines, with the patterns and in the order of docutils' parser;
what belongs to a block follows from its indent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_LABEL = re.compile(r"\.\.[ ]+_(?![ _])(?:`([^`]+)`|((?:[^:\\]|\\.)+)):[ ]*$")
_CODE = re.compile(r"\.\.[ ]+(?:code-block|code|sourcecode|literalinclude|parsed-literal|math)::[ ]*([\w+#.-]*)")
_RULE = re.compile(r"([!-/:-@[-`{-~])\1*$")
"""The line above or below a title."""
_BORDER = re.compile(r"=+[ =]*$")
_SHORTEST_RULE = 4
"""Characters of a rule that is one even where it does not fit the title."""

_NUMBER = r"(?:[0-9]+|[a-z]|[A-Z]|[ivxlcdm]+|[IVXLCDM]+|#)"
_ARGUMENT = r"(?:[a-zA-Z][a-zA-Z0-9_-]*|<[^<>]+>)"
_OPTION = rf"(?:[-+][a-zA-Z0-9](?: ?{_ARGUMENT})?|(?:--|/)[a-zA-Z0-9][a-zA-Z0-9_-]*(?:[ =]{_ARGUMENT})?)"
_ITEM = re.compile(
    r"[-+*\u2022\u2023\u2043](?: +|$)"  # a bullet
    rf"|(?P<number>(?:\({_NUMBER}\)|{_NUMBER}[).])(?: +|$))"
    r"|:(?![: ])(?:[^:\\]|\\.|:(?!(?:[ `]|$)))*(?<! ):(?: +|$)"  # a field
    rf"|{_OPTION}(?:, {_OPTION})*(?:  +| ?$)"
)
_DOCTEST = re.compile(r">>>( +|$)")
_LINE_BLOCK = re.compile(r"\|( +|$)")
_GRID_TABLE = re.compile(r"\+-[-+]+-\+$")
_SIMPLE_TABLE = re.compile(r"=+( +=+)+$")
_EXPLICIT = re.compile(r"(?:\.\.|__)( +|$)")


@dataclass(frozen=True, slots=True)
class Title:
    """A title in the line `line`, which spans the lines `first` to `last` with its rules, all counted from 0; `level`
    counts from 1. `labels` are those directly before it, with their lines; its section begins at the first of them."""

    text: str
    level: int
    first: int
    line: int
    last: int
    labels: tuple[tuple[str, int], ...]

    @property
    def start(self) -> int:
        """The first line of its section."""
        return self.labels[0][1] if self.labels else self.first


@dataclass(slots=True)
class Outline:
    """Titles, and blocks that must stay whole: first line, last line, language of a code directive (else None)."""

    titles: list[Title] = field(default_factory=list)
    blocks: list[tuple[int, int, str | None]] = field(default_factory=list)


def outline(lines: Sequence[str]) -> Outline:
    """Return the outline of a document, given by its lines."""
    return _Reader([line.expandtabs(8).rstrip() for line in lines]).outline()


class _Reader:
    """Reads one document. Every method for a block takes its first line and returns the line after it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._found = Outline()
        self._labels: list[tuple[str, int]] = []
        """Labels not followed by any other content yet."""
        self._styles: list[str] = []
        """The rules of titles in the order in which they first occur: their places are the levels."""
        self._no_bottom_before = 0

    def outline(self) -> Outline:
        line = 0
        while line < len(self._lines):
            line = self._block(line)
        return self._found

    def _block(self, first: int) -> int:
        text = self._lines[first]
        if not text:
            return first + 1
        skipped = self._skipped(first)
        if skipped is not None:
            self._labels.clear()
            return skipped
        if _EXPLICIT.match(text):
            return self._explicit_markup(first)
        return self._after_rule(first) if _RULE.match(text) else self._text(first)

    def _skipped(self, first: int) -> int | None:
        """The end of a block without titles or labels, None for any other."""
        text = self._lines[first]
        if text[0] == " ":
            return self._indented_end(first)
        if item := _ITEM.match(text):
            numbered_title = item["number"] and first + 1 < len(self._lines) and _RULE.match(self._lines[first + 1])
            return None if numbered_title else self._indented_end(first + 1)
        if _DOCTEST.match(text):
            return self._kept(first, self._end_of(first, bool))
        if _LINE_BLOCK.match(text):
            return self._end_of(first, bool)
        if _GRID_TABLE.match(text):
            return self._kept(first, self._end_of(first, lambda line: line[:1] in ("+", "|")))
        if _SIMPLE_TABLE.match(text):
            return self._simple_table(first)
        return None

    def _end_of(self, first: int, belongs: Callable[[str], bool]) -> int:
        end = first + 1
        while end < len(self._lines) and belongs(self._lines[end]):
            end += 1
        return end

    def _indented_end(self, first: int) -> int:
        """The first line from `first` on that is neither indented nor blank."""
        end = first
        while end < len(self._lines) and self._lines[end][:1] in ("", " "):
            end += 1
        return end

    def _kept(self, first: int, end: int, language: str | None = None) -> int:
        self._found.blocks.append((first, end - 1, language))
        return end

    def _simple_table(self, first: int) -> int | None:
        """The end of a simple table: a rule of "=" followed by a blank line."""
        if first >= self._no_bottom_before:
            for last in range(first + 1, len(self._lines)):
                if _BORDER.match(self._lines[last]) and not (last + 1 < len(self._lines) and self._lines[last + 1]):
                    return self._kept(first, last + 1)
            # a failed search is not repeated, so that many rules take linear time in total
            self._no_bottom_before = len(self._lines)
        return None

    def _explicit_markup(self, first: int) -> int:
        """Record a label or a code directive; skip other directives and comments."""
        text, end = self._lines[first], self._indented_end(first + 1)
        if label := _LABEL.match(text):
            self._labels.append((label[1] or label[2], first))
        elif code := _CODE.match(text):
            last = self._last_filled(first, end)
            if last > first:
                self._kept(first, last + 1, code[1])
            self._labels.clear()
        return end

    def _last_filled(self, first: int, end: int) -> int:
        """The last line that is not blank, or `first`."""
        return next((line for line in range(end - 1, first, -1) if self._lines[line]), first)

    def _after_rule(self, first: int) -> int:
        """Record a title between two rules; skip a transition, and rules that do not fit."""
        rule, *following = self._lines[first : first + 3]
        short = len(rule) < _SHORTEST_RULE
        if not following or not following[0]:
            return self._text(first) if short else first + 2
        if _RULE.match(following[0]):
            return self._text(first) if short else first + 2
        title, fits = following[0], following[1:] == [rule]
        if short and not (fits and _width(title) <= len(rule)):
            return self._text(first)
        if fits:
            self._title(title.lstrip(), rule[0] * 2, first, first + 1)
        return first + 3

    def _text(self, first: int) -> int:
        """Record a title with a rule below it, or a literal block below a paragraph; skip a paragraph or definition."""
        title = self._lines[first]
        below = self._lines[first + 1] if first + 1 < len(self._lines) else ""
        if _RULE.match(below) and (_width(title) <= len(below) or len(below) >= _SHORTEST_RULE):
            self._title(title, below[0], first, first)
            return first + 2
        self._labels.clear()
        if below[:1] == " ":
            return self._indented_end(first + 1)
        end = self._end_of(first, lambda line: line[:1] not in ("", " "))
        return self._literal_block(end) if self._lines[end - 1].endswith("::") else end

    def _literal_block(self, first: int) -> int:
        end = self._indented_end(first)
        begin = next((line for line in range(first, end) if self._lines[line]), end)
        if begin < end:
            self._kept(begin, self._last_filled(begin, end) + 1)
        return end

    def _title(self, text: str, style: str, first: int, line: int) -> None:
        if style not in self._styles:
            self._styles.append(style)
        level = self._styles.index(style) + 1
        self._found.titles.append(Title(text, level, first, line, line + 1, tuple(self._labels)))
        self._labels.clear()


def _width(text: str) -> int:
    """The columns that a text takes: two for wide East Asian characters, none for combining ones."""
    return sum(
        (2 if unicodedata.east_asian_width(sign) in "WF" else 1) - bool(unicodedata.combining(sign)) for sign in text
    )
