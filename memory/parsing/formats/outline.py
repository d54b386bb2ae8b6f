"""Parses the outline of a reStructuredText document with docutils' block parser and states for the left margin only.

The state classes must have the names by which docutils looks them up.
"""
# ruff: noqa: ARG002 -- the signatures are those of docutils

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, states
from docutils.statemachine import StringList, TransitionCorrection
from docutils.utils import new_document

_LABEL = re.compile(r"\.\.[ ]+_(?![ _])(?:`([^`]+)`|((?:[^:\\]|\\.)+)):[ ]*$")
_CODE = re.compile(r"\.\.[ ]+(?:code-block|code|sourcecode|literalinclude|parsed-literal|math)::[ ]*([\w+#.-]*)")
_UNDERLINE = re.compile(states.Body.patterns["line"])
_BORDER = re.compile(r"=+[ =]*$")


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
    labels: list[tuple[str, int]] = field(default_factory=list)
    """Labels not followed by any other content yet."""
    styles: list[object] = field(default_factory=list)


def outline(lines: Sequence[str]) -> Outline:
    """Return the outline of a document, given by its lines."""
    settings = get_default_settings(Parser)  # does not read settings files
    settings.file_insertion_enabled = settings.raw_enabled = False
    machine = _Machine(state_classes=(Body, Text, Line), initial_state="Body")
    document = new_document("document", settings)
    document.reporter = cast(Any, _NoReporter())
    machine.run(
        StringList([line.expandtabs(8).rstrip() for line in lines], "document"),
        document,
        inliner=cast(Any, _NoInliner()),
    )
    return machine.outline


class _Machine(states.RSTStateMachine):
    """The parser, with the outline found so far."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.outline = Outline()
        self.no_bottom_before = 0
        super().__init__(*args, **kwargs)


class _NoReporter:
    """Discards messages: markup errors that docutils reports do not prevent a text from being found."""

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Ignore a message."""

    debug = info = warning = error = severe = _nothing


class _NoInliner:
    """Parses no inline markup."""

    def init_customizations(self, settings: Any) -> None:
        """Do nothing; docutils requires the method."""

    def parse(self, text: str, *_: Any) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the text unchanged, without messages."""
        return [nodes.Text(text)], []


class _Looking:
    """Behaviour shared by the states."""

    state_machine: Any

    def section(self, title: str, source: str, style: object, lineno: int, messages: object) -> None:
        """Record a title; called by docutils.

        Args:
            title: The text of the title.
            source: The source text, unused.
            style: The rule character, or a pair of them with an overline.
            lineno: The line of the title's text, counted from 1.
            messages: Messages of docutils, unused.
        """
        found: Outline = self.state_machine.outline
        if style not in found.styles:
            found.styles.append(style)
        line = lineno - 1
        first = line - 1 if isinstance(style, tuple) else line
        labels, found.labels = tuple(found.labels), []
        found.titles.append(Title(title, found.styles.index(style) + 1, first, line, line + 1, labels))

    def paragraph(self, lines: Any, lineno: int) -> Any:
        """Return no nodes, and whether a literal block follows the paragraph."""
        self.state_machine.outline.labels.clear()
        return [], bool(lines) and lines[-1].rstrip().endswith("::")


class Body(_Looking, states.Body):
    """The first line of a block."""

    def _passed(self) -> Any:
        self.state_machine.outline.labels.clear()
        return [], "Body", []

    def indent(self, match: Any, context: Any, next_state: Any) -> Any:
        """Skip a quotation."""
        self.state_machine.get_indented()
        return self._passed()

    def bullet(self, match: Any, context: Any, next_state: Any) -> Any:
        """Skip a list item, field or option, with the indented lines that belong to it."""
        self.state_machine.get_first_known_indented(match.end())
        return self._passed()

    field_marker = option_marker = bullet

    def enumerator(self, match: Any, context: Any, next_state: Any) -> Any:
        """Skip an enumerated item, unless it is a numbered title."""
        lines, following = self.state_machine.input_lines, self.state_machine.line_offset + 1
        if following < len(lines) and _UNDERLINE.match(lines[following]):
            raise TransitionCorrection("text")
        return self.bullet(match, context, next_state)

    def line_block(self, match: Any, context: Any, next_state: Any) -> Any:
        """Skip a line block."""
        self.state_machine.get_text_block()
        return self._passed()

    def doctest(self, match: Any, context: Any, next_state: Any) -> Any:
        """Record a doctest block."""
        first = self.state_machine.abs_line_offset()
        block = self.state_machine.get_text_block()
        self.state_machine.outline.blocks.append((first, first + len(block) - 1, None))
        return self._passed()

    def grid_table_top(self, match: Any, context: Any, next_state: Any) -> Any:
        """Record a grid table: all following lines that begin with "+" or "|"."""
        lines, first = self.state_machine.input_lines, self.state_machine.line_offset
        last = first
        while last + 1 < len(lines) and lines[last + 1][:1] in ("+", "|"):
            last += 1
        return self._table(first, last)

    def simple_table_top(self, match: Any, context: Any, next_state: Any) -> Any:
        """Record a simple table, which ends at a rule of "=" followed by a blank line."""
        lines, first = self.state_machine.input_lines, self.state_machine.line_offset
        if first < self.state_machine.no_bottom_before:
            raise TransitionCorrection("text")
        # `no_bottom_before` remembers a failed search, so that many rules take linear time in total.
        for last in range(first + 1, len(lines)):
            if _BORDER.match(lines[last]) and not (last + 1 < len(lines) and lines[last + 1]):
                return self._table(first, last)
        self.state_machine.no_bottom_before = len(lines)
        raise TransitionCorrection("text")

    def _table(self, first: int, last: int) -> Any:
        self.state_machine.outline.blocks.append((first, last, None))
        self.state_machine.next_line(last - first)
        return self._passed()

    def explicit_markup(self, match: Any, context: Any, next_state: Any) -> Any:
        """Record a label or a code directive; skip other directives and comments."""
        first, found = self.state_machine.abs_line_offset(), self.state_machine.outline
        block, *_ = self.state_machine.get_first_known_indented(match.end(), strip_top=False)
        while block and not block[-1].strip():
            block.trim_end()
        if label := _LABEL.match(match.string):
            found.labels.append((label[1] or label[2], first))
        elif code := _CODE.match(match.string):
            if len(block) > 1:
                found.blocks.append((first, first + len(block) - 1, code[1]))
            found.labels.clear()
        return [], "Body", []

    anonymous = explicit_markup


class Text(_Looking, states.Text):
    """The second line of a block that begins with text."""

    def indent(self, match: Any, context: Any, next_state: Any) -> Any:
        """Skip a term and its definition."""
        self.state_machine.get_indented()
        self.state_machine.outline.labels.clear()
        return [], "Body", []

    def literal_block(self) -> Any:
        """Record the literal block below a paragraph that ends with two colons."""
        indented, _, offset, _ = self.state_machine.get_indented()
        while indented and not indented[-1].strip():
            indented.trim_end()
        if indented:
            self.state_machine.outline.blocks.append((offset, offset + len(indented) - 1, None))
        return []


class Line(_Looking, states.Line):
    """The second line of a block that begins with a rule."""
