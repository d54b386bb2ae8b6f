"""Sections of a document by name: an ANCHOR's or a heading's; read, replaced and added to (features T4 and A7)."""

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
from speckit_memory.memory.parsing.markdown.commonmark import Leaf, leaves
from speckit_memory.memory.parsing.markdown.title import plain_text

_BLANK_START = re.compile(r"(?:[ \t]*+\n)*+")


@dataclass(frozen=True, slots=True)
class Part:
    """A named stretch of a text, by offsets, without the heading or the tags that name it."""

    name: str
    start: int
    end: int
    level: int = 0
    """Of a heading, 1 to 6; 0 for an ANCHOR section."""
    path: str = ""
    """The names of the headings above it and its own, as results show them."""


def parts(body: str) -> list[Part]:
    """All ANCHOR sections, and what stands below each heading down to the next one of its level or above it, or to the
    tag of an ANCHOR section that reaches across its borders.

    Line ends must be "\\n".
    """
    sections, _ = anchors.find(body, "")
    found = [Part(section.id, section.inner_start, section.inner_end) for section in sections]
    starts = [section.start for section in sections]
    above: list[known_sections.Headed] = []
    around: list[anchors.Section] = []  # those that the text of a heading begins in, the innermost last
    passed = 0
    for one in known_sections.headed(body):
        above = [*(each for each in above if each.level < one.level), one]
        path = " > ".join(each.heading for each in above)
        first = bisect_left(starts, one.inner)
        around += sections[passed:first]
        passed = first
        while around and around[-1].end <= one.inner:
            around.pop()
        tags = [each.start for each in sections[first : bisect_left(starts, one.end)] if each.end > one.end]
        tags += [each.inner_end for each in around[-1:] if each.end <= one.end]
        end = min((_line_start(body, tag) for tag in tags), default=one.end)
        found.append(Part(one.heading, min(one.inner, end), end, one.level, path))
    return found


def _line_start(body: str, at: int) -> int:
    """The beginning of a line that is blank up to there, else the place itself."""
    start = body.rfind("\n", 0, at) + 1
    return at if body[start:at].strip(" \t") else start


def part(body: str, name: str) -> Part:
    """The section of that name: an ANCHOR's id, else a heading, as it is spelled before whatever its case, else the
    first heading that says it in other words (feature I11); a heading may be named with those above it. Raises E104
    for another name."""
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


def edited(text: str, file: str, how: Literal["append", "replace"], section: str, content: str) -> str:
    """A document with something added to a section (or to its end), or with other content in it; everything outside
    the section stays as it is.

    Raises E104, and E101 where the place is not certain: several sections have that name, the section lies in a list,
    the content would change how the rest is read, or the lines of the document end in different ways.
    """
    plain = clean(text)
    newline = "\r\n" if "\r" in text else "\n"
    if plain.replace("\n", newline) != text:
        raise SpeckitError("E101", f"{file}: its lines end in different ways")
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
    for opening, closing in dict.fromkeys(product(openings, closings)):
        new = f"{before}{opening}{middle}" if before and middle else before or middle
        at = len(new) - len(middle) if middle else -1
        new += f"{closing}{after}" if after else "\n"
        harm = _harm(body, new, len(before), place.end, at)
        if not harm:
            head = plain[: front.body_start]
            if head and not head.endswith("\n"):
                head += "\n"
            return (head + new).replace("\n", newline)
        harms.append(harm)
    actions = ("close what is open", "edit the file by hand and index it")
    raise SpeckitError("E101", f"{file}: {harms[0]}", actions=actions)


def _line_with_text(body: str, place: Part) -> int:
    """Where the first line of a section begins that is not blank, -1 when there is none."""
    blank = _BLANK_START.match(body, place.start, place.end)
    start = blank.end() if blank else place.start
    return start if body[start : place.end].strip(" \t\n") else -1


def _without_blank_end(text: str) -> str:
    """The text without the blank lines at its end; blanks at the end of its last line stay."""
    end = len(text.rstrip(" \t\n"))
    line_end = text.find("\n", end)
    return text[:line_end] if end and line_end >= 0 else text if end else ""


def _place(body: str, file: str, section: str, first_line: int) -> Part:
    """The one section of a name; blanks before the tag that closes it are none of it."""
    if PurePosixPath(file).suffix.lower() in FORMATS["rst"]:
        message = f"{file} is reStructuredText, whose sections are not edited"
        raise SpeckitError("E101", message, actions=("append to its end, without a section", "edit the file by hand"))
    place, *others = found = _answering(body, section)
    if others:
        lines = ", ".join(str(body.count("\n", 0, one.start) + first_line) for one in found[:5])
        message = f"{file}: '{section}' names {len(found)} sections, whose texts begin in the lines {lines}"
        paths = ", ".join(f"'{one.path}'" for one in found[:5] if one.path != one.name)
        actions = (f"name one together with the headings above it: {paths}",) if paths else ()
        raise SpeckitError("E101", message, actions=(*actions, "edit the file by hand and index it"))
    if place.level:
        return place
    for leaf in leaves(body):
        if leaf.depth and (leaf.start < place.start <= leaf.end or leaf.start <= place.end < leaf.end):
            raise SpeckitError("E101", f"{file}: the section '{section}' lies in a list or a quotation")
    return replace(place, end=max(place.start, _line_start(body, place.end)))


def _harm(old: str, new: str, kept: int, end: int, at: int) -> str:
    """Why an edit would change how the text around it is read, "" where it does not.

    The first `kept` characters stay, and so do those from `end` on. What is put between them begins in `new` at `at`,
    -1 for nothing.
    """
    shift = len(new) - len(old)
    rest = end
    if rest and old[rest - 1] != "\n":  # a tag among words: the lines below it are what must stay
        rest = old.find("\n", rest) + 1 or len(old)
    before, after = list(leaves(old)), list(leaves(new))
    for leaf in after:
        if leaf.kind not in ("fence", "html"):
            continue
        what = "code" if leaf.kind == "fence" else "HTML"
        if leaf.start <= kept < at < leaf.end:
            return f"{what} that is not closed stands before the place, and the content would be part of it"
        if kept <= leaf.start < rest + shift < leaf.end:
            line = new.count("\n", at, leaf.start) + 1
            return f"line {line} of the content opens {what} that is not closed, and what follows would be part of it"
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


def _looks(leaf: Leaf, shift: int = 0) -> tuple[object, ...]:
    return leaf.kind, leaf.start + shift, leaf.depth, leaf.level, leaf.heading, leaf.form
