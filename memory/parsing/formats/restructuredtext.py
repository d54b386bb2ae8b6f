"""Converts reStructuredText to Markdown line by line (feature I1).

Titles become headings, labels before titles ANCHOR sections, and literal blocks, code and tables fenced code. Every
other line stays unchanged. Only blocks at the left margin are parsed: no directive runs, so no file is included, no
image opened and no text expanded, and time and memory are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from speckit_memory.memory.parsing.formats.outline import Outline, Title, outline
from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.limits import LONGEST_OUTLINED
from speckit_memory.memory.parsing.markdown.html_blocks import opens_html

LONGEST_LINE = 10_000
"""Characters of a line passed to the parser; no longer line begins a block."""
LONGEST_NAME = 100
"""Characters of a label that can name a section."""

_MARKDOWN = re.compile(r" {0,3}(?=#{1,6}(?:[ \t]|$)|`{3}|~{3}|<)")
"""Start of a text line that Markdown might read as a heading, a fence or HTML."""
_NO_ID = re.compile(r"[^A-Za-z0-9/_-]+")
_BACKTICKS = re.compile(r"`{3,}")


def read(text: str) -> Readable:
    """Return the text as Markdown with the same lines. Beyond `LONGEST_OUTLINED` characters it is plain text."""
    lines = text.split("\n")
    end, length = 0, 0
    while end < len(lines) and length + len(lines[end]) < LONGEST_OUTLINED:
        length += len(lines[end]) + 1
        end += 1
    found = outline([line[:LONGEST_LINE] for line in lines[:end]])
    whole = end == len(lines)
    return Readable(
        "\n".join(_rendered(lines, found)), limit="" if whole else "outline", limit_line=0 if whole else end + 1
    )


def _rendered(lines: Sequence[str], found: Outline) -> list[str]:
    changed = [_as_text(line) for line in lines]
    for first, last, language in found.blocks:
        _fence(changed, lines, first, last, language)
    for title in found.titles:
        for line in range(title.first, title.last + 1):
            changed[line] = ""
        changed[title.line] = f"{'#' * min(title.level, 6)} {title.text}"
    if not any("ANCHOR" in line for line in lines):  # otherwise the author has named sections
        _name(changed, found.titles)
    return changed


def _as_text(line: str) -> str:
    """Return the line with a backslash before a character that Markdown would read as a heading, a fence or HTML."""
    found = _MARKDOWN.match(line)
    if not found or (line[found.end()] == "<" and not opens_html(line)):
        return line
    return f"{found[0]}\\{line[found.end() :]}"


def _fence(changed: list[str], lines: Sequence[str], first: int, last: int, language: str | None) -> None:
    """Fence a block, using the blank lines around it. `language` is that of a directive in the first line, None without
    a directive. A block without blank lines around it is left unchanged."""
    opening = first if language is not None else first - 1
    closing = last + 1
    taken = [changed[line] for line in ([opening] if language is None else []) + [closing] if 0 <= line < len(lines)]
    if opening < 0 or any(map(str.strip, taken)):
        return
    longest = max((len(run) for line in lines[first:closing] for run in _BACKTICKS.findall(line)), default=2)
    fence = "`" * (longest + 1)
    changed[first:closing] = lines[first:closing]
    changed[opening] = fence + (language or "")
    if closing < len(lines):
        changed[closing] = fence
    else:
        changed[last] += f"\n{fence}"  # an extra line at the end of the text does not shift any line number


def _name(changed: list[str], titles: Sequence[Title]) -> None:
    """Turn labels before titles into ANCHOR sections, which end at the next title of the same or a higher level."""
    taken: set[str] = set()
    open_sections: list[tuple[int, list[str]]] = []  # level of the title, names of its section
    for title in titles:
        closing: list[str] = []
        while open_sections and open_sections[-1][0] >= title.level:
            closing += reversed(open_sections.pop()[1])
        names = []
        for label, line in title.labels:
            name = _NO_ID.sub("-", label).strip("-/_")
            if name and name not in taken and len(name) <= LONGEST_NAME:
                taken.add(name)
                names.append(name)
                changed[line] = f"<!-- ANCHOR:{name} -->"
        open_sections.append((title.level, names))
        if closing:
            _close(changed, title, _tags(closing))
    if last := [name for _, names in reversed(open_sections) for name in reversed(names)]:
        changed[-1] += f"{chr(10) if changed[-1] else ''}{_tags(last)}"


def _tags(names: Sequence[str]) -> str:
    return " ".join(f"<!-- /ANCHOR:{name} -->" for name in names)


def _close(changed: list[str], title: Title, tags: str) -> None:
    """Write closing tags before a title: in a blank line, or in the line of its label or rule."""
    above = title.start - 1
    if above >= 0 and not changed[above].strip():
        changed[above] = tags
    elif title.labels:
        changed[title.start] = f"{tags} {changed[title.start]}"
    elif title.first < title.line:
        changed[title.first] = tags
    else:
        changed[title.line], changed[title.last] = tags, changed[title.line]
