"""Finds, replaces and extends sections of a document by the name of an ANCHOR or a heading (features T4 and A7)."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import product
from pathlib import PurePosixPath
from typing import Literal

from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.parsing.markdown import anchors, known_sections
from speckit_memory.memory.parsing.markdown.commonmark import LeafBlock, leaves
from speckit_memory.memory.parsing.markdown.title import plain_text

_BLANK_START = re.compile(r"(?:[ \t]*+\n)*+")


@dataclass(frozen=True, slots=True)
class Part:
    """A named part of a text, by offsets, without the heading or tags that name it."""

    name: str
    start: int
    end: int
    level: int = 0
    """Level of the heading, 1 to 6; 0 for an ANCHOR section."""
    path: str = ""
    """Its name after those of the headings above it, as results show them."""


def parts(body: str) -> list[Part]:
    """All ANCHOR sections and heading sections. A heading section ends at the next heading of the same or a higher
    level, or at the tag of an ANCHOR section that crosses its borders.

    Line endings must be "\\n".
    """
    sections, _ = anchors.find(body, "")
    found = [Part(section.id, section.inner_start, section.inner_end) for section in sections]
    starts = [section.start for section in sections]
    above: list[known_sections.HeadedSection] = []
    around: list[anchors.Section] = []  # the sections that contain the start of a heading's text, innermost last
    passed = 0
    for one in known_sections.headed_sections(body):
        above = [*(each for each in above if each.level < one.level), one]
        path = " > ".join(each.heading for each in above)
        first = bisect_left(starts, one.inner)
        around += sections[passed:first]
        passed = first
        while around and around[-1].end <= one.inner:
            around.pop()
        # Tags of ANCHOR sections that begin in this section and end after it, or contain its start and end in it
        tags = [each.start for each in sections[first : bisect_left(starts, one.end)] if each.end > one.end]
        tags += [each.inner_end for each in around[-1:] if each.end <= one.end]
        end = min((_line_start(body, tag) for tag in tags), default=one.end)
        found.append(Part(one.heading, min(one.inner, end), end, one.level, path))
    return found


def _line_start(body: str, at: int) -> int:
    """The start of a line that is blank up to `at`, else `at`."""
    start = body.rfind("\n", 0, at) + 1
    return at if body[start:at].strip(" \t") else start


def part(body: str, name: str) -> Part:
    """The section of a name: an ANCHOR id, else a heading (an exact match before a case-insensitive one), else the
    first heading with the same meaning (feature I11). A heading may be given with those above it. Raises E104 for an
    unknown name."""
    return _answering(body, name)[0]


def _answering(body: str, name: str) -> list[Part]:
    known = parts(body)
    wanted = _folded(plain_text(name.strip().lstrip("#")))
    spelled = [one for one in known if one.name == name.strip()]
    named = spelled or [one for one in known if _folded(one.name) == wanted]
    tagged = [one for one in named if not one.level]
    below = [one for one in known if one.level]
    found = (
        tagged
        or named
        or [one for one in below if f" > {_folded(one.path)}".endswith(f" > {wanted}")]
        or [below[at] for at in known_sections.answering([one.name for one in below], name)]
    )
    if not found:
        names = [one.name for one in known]
        hint = nearest(name, names) if names else "It has none."
        raise SpeckitError("E104", f"there is no section '{name}'", hint=hint)
    return found


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def edit_section(text: str, file: str, how: Literal["append", "replace"], section: str, content: str) -> str:
    """The text of a document after an edit of a section; everything outside the section is kept.

    Args:
        text: The document.
        file: Its name, for messages.
        how: Append to the section or replace its contents.
        section: Name of the section; "" for the whole document.
        content: The new text.

    Raises:
        SpeckitError: E104 for an unknown section; E101 if the place is ambiguous (several sections with the name, a
            section in a list, mixed line endings) or the content would change how the rest is parsed.
    """
    plain = clean(text)
    newline = "\r\n" if "\r" in text else "\n"
    if plain.replace("\n", newline) != text:
        raise SpeckitError("E101", f"{file}: it has mixed line endings")
    front = front_matter.parse(plain, file)[0]
    body = plain[front.body_start :]
    place = _place(body, file, section, front.body_line) if section else Part("", 0, len(body))
    before, text_end = _without_blank_end(body[: place.start]), len(_without_blank_end(body[: place.end]))
    after = body[place.end :]
    middle = _BLANK_START.sub("", _without_blank_end(clean(content)), count=1)
    text_start = _line_with_text(body, place)
    usual = "\n" if section and not place.level else "\n\n"
    openings = [body[len(before) : text_start] if text_start >= 0 else usual, "\n\n"]
    closings = [body[text_end : place.end] if text_start >= 0 else usual, "\n\n"]
    if how == "append" and text_start >= 0:
        before, openings = body[:text_end], ["\n\n"]
    harms: list[str] = []
    # Try the present blank lines first, then paragraph breaks, until the result parses as intended.
    for opening, closing in dict.fromkeys(product(openings, closings)):
        new = f"{before}{opening}{middle}" if before and middle else before or middle
        at = len(new) - len(middle) if middle else -1
        new += f"{closing}{after}" if after else "\n"
        # Parse before and after: everything outside the section must have the same structure.
        harm = _harm(body, new, len(before), place.end, at)
        if not harm:
            head = plain[: front.body_start]
            if head and not head.endswith("\n"):
                head += "\n"
            return (head + new).replace("\n", newline)
        harms.append(harm)
    actions = ("close what is open in the content", "edit the file by hand and index it")
    raise SpeckitError("E101", f"{file}: {harms[0]}", actions=actions)


def _line_with_text(body: str, place: Part) -> int:
    """The start of the first non-blank line of a section, -1 if there is none."""
    blank = _BLANK_START.match(body, place.start, place.end)
    start = blank.end() if blank else place.start
    return start if body[start : place.end].strip(" \t\n") else -1


def _without_blank_end(text: str) -> str:
    """The text without trailing blank lines; blanks at the end of its last line are kept."""
    end = len(text.rstrip(" \t\n"))
    line_end = text.find("\n", end)
    return text[:line_end] if end and line_end >= 0 else text if end else ""


def _place(body: str, file: str, section: str, first_line: int) -> Part:
    """The only section of this name, without blanks before its closing tag."""
    if PurePosixPath(file).suffix.lower() in FORMATS["rst"]:
        message = f"{file} is reStructuredText, whose sections cannot be edited"
        raise SpeckitError("E101", message, actions=("append to its end, without a section", "edit the file by hand"))
    place, *others = found = _answering(body, section)
    if others:
        lines = ", ".join(str(body.count("\n", 0, one.start) + first_line) for one in found[:5])
        message = f"{file}: '{section}' names {len(found)} sections, whose texts begin on lines {lines}"
        paths = ", ".join(f"'{one.path}'" for one in found[:5] if one.path != one.name)
        actions = (f"name one together with the headings above it: {paths}",) if paths else ()
        raise SpeckitError("E101", message, actions=(*actions, "edit the file by hand and index it"))
    if place.level:
        return place
    for leaf in leaves(body):
        if leaf.depth and (leaf.start < place.start <= leaf.end or leaf.start <= place.end < leaf.end):
            raise SpeckitError("E101", f"{file}: the section '{section}' is inside a list or a quotation")
    return replace(place, end=max(place.start, _line_start(body, place.end)))


def _harm(old: str, new: str, kept: int, end: int, at: int) -> str:
    """Why an edit would change how the surrounding text is parsed, "" if it would not.

    The first `kept` characters of `old` are kept, and so are those from `end` on. The text between them begins in `new`
    at `at`, -1 if there is none.
    """
    # Offsets after the edit move by this much.
    shift = len(new) - len(old)
    rest = end
    if rest and old[rest - 1] != "\n":  # a tag inside a line: the lines after it are what must be kept
        rest = old.find("\n", rest) + 1 or len(old)
    before, after = list(leaves(old)), list(leaves(new))
    for leaf in after:
        if leaf.kind not in ("fence", "html"):
            continue
        what = "code" if leaf.kind == "fence" else "HTML"
        if leaf.start <= kept < at < leaf.end:
            return f"{what} that is not closed before this place would include the content"
        if kept <= leaf.start < rest + shift < leaf.end:
            line = new.count("\n", at, leaf.start) + 1
            return f"line {line} of the content opens {what} without closing it, which would include the text after it"
    same = (
        [_looks(leaf) for leaf in before if leaf.end <= kept + 1]
        == [_looks(leaf) for leaf in after if leaf.end <= kept + 1]
        and [_looks(leaf, shift) for leaf in before if leaf.start >= rest]
        == [_looks(leaf) for leaf in after if leaf.start >= rest + shift]
        and (at < 0 or any(leaf.start == at for leaf in after))
        and {
            (one.id, *(place if place <= kept else place + shift for place in (one.start, one.end)))
            for one in anchors.find(old, "")[0]
            if one.start < kept or one.end > end
        }
        <= {(one.id, one.start, one.end) for one in anchors.find(new, "")[0]}
    )
    return "" if same else "the content would change how the text around it is read"


def _looks(leaf: LeafBlock, shift: int = 0) -> tuple[object, ...]:
    return leaf.kind, leaf.start + shift, leaf.depth, leaf.level, leaf.heading, leaf.form
