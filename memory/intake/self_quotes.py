"""Leaves out text that was pasted from an answer of this memory, so that it is not remembered again (feature I9).

Answers show a memory in a distinctive form: a numbered heading or row, the memory's id between middle dots in it or
below it, and the passage as a quotation. Pasted into a file, the passage would become a second memory that surfaces
next to the first. Such a block is stored as empty lines, so that lines keep their numbers; the file is not changed.
Measurements: docs/decisions/0061-saving-well.md.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ALLOW = "speckit:allow recalled"
"""Marker for documents that explain the form of answers: with it anywhere in the text, nothing is left out."""
MOST_REMARKS = 8
"""Lines between the id and the passage: the memory's replacement, its other copies, why it surfaced."""

_ID = re.compile(r"(?:^|· )id \d{1,12}(?: ·|$)")
_HEADING = re.compile(r"([ \t>]{0,12})#{1,6} \d{1,3}\. (\S.{0,600})$")
_ROW = re.compile(r"([ \t>]{0,12}?) {0,2}\d{1,3}\. -?\d{1,6}\.\d{4}  (\S.{0,600})$")
_FIELD = re.compile(r'"memory_text": ?"(?:[^"\\\n]|\\[^\n])*+"')
_PLACE = re.compile(r":\d{1,9}(?:-\d{1,9})?$")


class SelfQuote(NamedTuple):
    """A block that was left out: the source it names ("" for a JSON field), and its lines, counted from 1."""

    source: str
    first_line: int
    last_line: int


def leave_out(text: str) -> tuple[str, tuple[SelfQuote, ...]]:
    """Return the text with recalled blocks emptied, and these blocks. Linear in the length of the text."""
    rendered, as_json = " · id " in text or "\nid " in text, '"memory_text"' in text
    if not (rendered or as_json) or ALLOW in text:
        return text, ()
    found: list[SelfQuote] = []
    lines = text.split("\n")
    if as_json:
        for number, line in enumerate(lines):
            if '"memory_text"' in line and (without := _FIELD.sub('"memory_text": ""', line)) != line:
                lines[number] = without
                found.append(SelfQuote("", number + 1, number + 1))
    at = 0
    while rendered and at < len(lines) - 1:
        block = _block(lines, at)
        if block is None:
            at += 1
            continue
        source, end = block
        lines[at:end] = [""] * (end - at)
        found.append(SelfQuote(source, at + 1, end))
        at = end
    return ("\n".join(lines), tuple(sorted(found, key=lambda each: each.first_line))) if found else (text, ())


def _block(lines: list[str], at: int) -> tuple[str, int] | None:
    """Return the source and the end of the recalled block that begins at a line; None if none begins there."""
    line = lines[at]
    if "." not in line[:20]:
        return None
    below = at + 1
    # Two renderings: a Markdown heading with a quotation, and a terminal row with a vertical bar.
    for form, quoting in ((_HEADING, ">"), (_ROW, "    │")):
        head = form.match(line)
        if head is None:
            continue
        mark = head[1] + quoting
        if form is _HEADING and (named := _ID.search(head[2])) and named.start():
            name = head[2][: named.start()]
            break
        if lines[below].startswith(head[1]) and _ID.search(lines[below][len(head[1]) :].strip()):
            name, below = head[2], below + 1
            break
    else:
        return None
    end = below
    # Skip remarks up to the passage; without a quoted passage it is not a recalled block.
    while end < len(lines) and end - at < MOST_REMARKS and lines[end].strip() and not lines[end].startswith(mark):
        end += 1
    start = end
    while end < len(lines) and lines[end].startswith(mark):
        end += 1
    return (_PLACE.sub("", name.strip()), end) if end > start else None
