"""Named sections: `<!-- ANCHOR:id -->` … `<!-- /ANCHOR:id -->` (feature I2)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.errors import Problem, Where
from speckit_memory.memory.parsing.limits import MOST_TAGS, Limits

if TYPE_CHECKING:
    from speckit_memory.memory.parsing.markdown.commonmark import LeafBlock

# Linear time: the quantifiers of blanks are possessive and a name ends before blanks, so nothing backtracks.
# A name cannot contain the start of another comment, so unclosed tags are scanned once.
_TAG = re.compile(
    r"(?<!`)<!--\s*+(?:(/)\s*+)?+ANCHOR\s*+:\s*+((?:(?!<!--)\S(?:(?:(?!<!--).){0,198}?\S)??)??)\s*+-->", re.IGNORECASE
)
_MARK = re.compile(r"<!--|`++|\\[`<\\]")
"""Start of a comment or of a code span; a backslash escapes either."""
_CODE = re.compile(r"`++")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_-]*")
_SAID = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Section:
    """A named section of a text. `start` and `end` are character offsets including the tags, `inner_start` and
    `inner_end` those of the content; lines count from 1 at the start of the text."""

    id: str
    start: int
    end: int
    inner_start: int
    inner_end: int
    first_line: int
    last_line: int

    def content(self, text: str) -> str:
        """Return the text between the tags, stripped."""
        return text[self.inner_start : self.inner_end].strip()


@dataclass(frozen=True, slots=True)
class _Open:
    id: str
    start: int
    end: int
    line: int
    column: int


def find(
    text: str, file: str, first_line: int = 1, limits: Limits | None = None, *, closing_open: bool = False
) -> tuple[tuple[Section, ...], list[Problem]]:
    """Find all well-formed sections.

    Sections may be nested but not overlap. Tags in code, in `<pre>` and within other comments are ignored.

    Args:
        text: The text to search.
        file: The file named in problems.
        first_line: The number of the text's first line in its file; only used for problems.
        limits: Notes the first tag beyond `MOST_TAGS`; reading stops there, and sections still open are dropped.
        closing_open: End an unclosed section at the next tag, or at the end of the text (feature I10).

    Returns:
        The sections by start, and a problem (E091) for every broken tag.
    """
    sections: list[Section] = []
    problems: list[Problem] = []
    stack: list[_Open] = []
    open_ids: set[str] = set()
    taken: dict[str, int] = {}
    unclosed: list[_Open] = []
    borders_met: list[tuple[int, int]] = []

    def report(message: str, line: int, column: int, hint: str = "") -> None:
        problems.append(Problem("E091", message, hint, where=Where(file, line + first_line - 1, column)))

    for number, (line, match, column) in enumerate(_tags(text)):
        if number == MOST_TAGS:
            (limits or Limits()).note("tag", text, match.start())
            stack.clear()
            break
        closing, name = bool(match[1]), match[2]
        borders_met.append((match.start(), line))
        if not _IDENTIFIER.fullmatch(name):
            hint = "An id begins with a letter or digit; letters, digits, '-', '_' and '/' may follow."
            report(f"'{name}' is not an anchor id", line, column, hint)
        elif not closing and name in taken:
            first = taken[name] + first_line - 1
            report(
                f"the anchor '{name}' is opened twice; the first is at line {first}",
                line,
                column,
                "An anchor id must be unique in its document.",
            )
        elif not closing:
            taken[name] = line
            open_ids.add(name)
            stack.append(_Open(name, match.start(), match.end(), line, column))
        elif name not in open_ids:
            report(
                f"the anchor '{name}' is closed but not open here",
                line,
                column,
                f"Open the section with <!-- ANCHOR:{name} -->, or remove this tag.",
            )
        else:
            # Sections cannot overlap: a closing tag also ends the sections opened inside, which are broken.
            while (tag := stack.pop()).id != name:
                open_ids.remove(tag.id)
                unclosed.append(tag)
                report(f"the anchor '{tag.id}' is not closed before the end of '{name}'", tag.line, tag.column)
            open_ids.remove(name)
            sections.append(Section(name, tag.start, match.end(), tag.end, match.start(), tag.line, line))
    for tag in stack:
        report(f"the anchor '{tag.id}' is not closed", tag.line, tag.column)
    # Unclosed sections end at the next tag; the end of the text is the last possible border.
    if closing_open:
        borders_met.append((len(text), text.count("\n") + 1))
        for tag in (*unclosed, *stack):
            end, last_line = borders_met[bisect_right(borders_met, (tag.start, tag.line))]
            sections.append(Section(tag.id, tag.start, end, tag.end, end, tag.line, last_line))
    return tuple(sorted(sections, key=lambda section: section.start)), problems


def borders(sections: Sequence[Section]) -> list[tuple[int, str]]:
    """Return where the innermost section changes: pairs of offset and section id, "" for none, ascending from 0."""
    stretches = [(0, "")]
    stack: list[Section] = []

    def close_until(offset: int) -> None:
        while stack and stack[-1].end <= offset:
            end = stack.pop().end
            stretches.append((end, stack[-1].id if stack else ""))

    for section in sections:
        close_until(section.start)
        stretches.append((section.start, section.id))
        stack.append(section)
    close_until(max((section.end for section in sections), default=0))
    return stretches


def without_tags(text: str) -> str:
    """Return the text for analysis, with tags replaced by blanks."""
    return _TAG.sub(" ", text) if "<!--" in text else text


def says_nothing(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] holds only blanks and tags."""
    if text.find("<!--", start, end) < 0:
        return _SAID.search(text, start, end) is None
    return not without_tags(text[start:end]).strip()


def _tags(text: str) -> Iterator[tuple[int, re.Match[str], int]]:
    """Yield (line, match, column) of each tag that is a separate comment; lines and columns count from 1."""
    if "<!--" not in text or "anchor" not in text.casefold():
        return
    from speckit_memory.memory.parsing.markdown.commonmark import leaves  # most searches do not need it
    from speckit_memory.memory.parsing.markdown.html_blocks import RAW_HTML

    line, line_start = 1, 0
    for leaf in leaves(text):
        if leaf.kind in ("fence", "code") or (leaf.kind == "html" and leaf.form in RAW_HTML):
            continue
        for tag in _tags_in(text, leaf):
            start = text.rfind("\n", line_start, tag.start()) + 1 or line_start
            line, line_start = line + text.count("\n", line_start, start), start
            yield line, tag, tag.start() - line_start + 1


def _tags_in(text: str, leaf: LeafBlock) -> Iterator[re.Match[str]]:
    """Yield the tags of a block that are neither in a code span nor within another comment."""
    done, closed = 0, True
    code: dict[int, list[int]] | None = None
    for mark in _MARK.finditer(text, leaf.start, leaf.end):
        # Marks inside a comment, a tag or a code span that was already consumed do not count.
        if mark.start() < done:
            continue
        if mark[0] == "<!--":
            line_end = text.find("\n", mark.start(), leaf.end)
            tag = _TAG.match(text, mark.start(), line_end if line_end >= 0 else leaf.end)
            if tag:
                yield tag
                done = tag.end()
            elif closed:
                end = text.find("-->", mark.start() + 2, leaf.end)
                closed = end >= 0
                done = end + 3 if closed else done
        elif mark[0][0] == "`" and leaf.kind != "html":
            # A code span closes at the next run of as many backticks: index the runs by length once, then bisect,
            # so that a text of many unclosed runs still takes O(n log n).
            if code is None:
                code = {}
                for run in _CODE.finditer(text, leaf.start, leaf.end):
                    code.setdefault(len(run[0]), []).append(run.start())
            ends = code.get(len(mark[0]), [])
            following = bisect_right(ends, mark.start())
            if following < len(ends):
                done = ends[following] + len(mark[0])
