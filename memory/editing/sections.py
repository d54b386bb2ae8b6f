"""Sections of a document by name: an ANCHOR's or a heading's; read, replaced and added to (features T4 and A7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.indexing import anchors, front_matter, known_sections
from speckit_memory.memory.indexing.encoding import clean


@dataclass(frozen=True, slots=True)
class Part:
    """A named stretch of a text, by offsets, without the heading or the tags that name it."""

    name: str
    start: int
    end: int
    level: int = 0
    """Of a heading, 1 to 6; 0 for an ANCHOR section."""


def parts(body: str) -> list[Part]:
    """All ANCHOR sections, and what stands below each heading down to the next one of its level or above it.

    Line ends must be "\\n".
    """
    sections, _ = anchors.find(body, "")
    found = [Part(section.id, section.inner_start, section.inner_end) for section in sections]
    return found + [Part(one.heading, one.inner, one.end, one.level) for one in known_sections.headed(body)]


def part(body: str, name: str) -> Part:
    """The section of that name: an ANCHOR's id, else a heading, whatever its case, else the first heading that says it
    in other words (feature I11). Raises E104 for another name."""
    known = parts(body)
    wanted = " ".join(name.strip().lstrip("#").split()).casefold()
    for one in known:
        if " ".join(one.name.split()).casefold() == wanted:
            return one
    below = [one for one in known if one.level]
    for at in known_sections.answering([one.name for one in below], name):
        return below[at]
    names = [one.name for one in known]
    raise SpeckitError("E104", f"there is no section '{name}'", hint=nearest(name, names) if names else "It has none.")


def replaced(body: str, name: str, content: str) -> str:
    """The text with other content in a section. Raises E104."""
    found = part(body, name)
    return _put(body, found.start, found.end, content, found)


def appended(body: str, name: str, content: str) -> str:
    """The text with something added at the end of a section, or of the text where no name is given. Raises E104."""
    found = part(body, name) if name else Part("", 0, len(body))
    end = found.start + len(body[found.start : found.end].rstrip())
    return _put(body, end, found.end, content, found)


def edited(text: str, file: str, how: Literal["append", "replace"], section: str, content: str) -> str:
    """A document with something added to a section (or to its end), or with other content in it; its front matter and
    its line ends stay. Raises E104, and E101 for a document whose lines end in different ways."""
    plain = clean(text)
    newline = "\r\n" if "\r" in text else "\n"
    if plain.replace("\n", newline) != text:
        raise SpeckitError("E101", f"{file}: its lines end in different ways")
    start = front_matter.parse(plain, file)[0].body_start
    change = replaced if how == "replace" else appended
    return (plain[:start] + change(plain[start:], section, clean(content))).replace("\n", newline)


def _put(body: str, start: int, end: int, content: str, within: Part) -> str:
    """The text with content in the place of a stretch; a blank line on both sides, unless tags stand there."""
    before, after = body[:start].rstrip("\n"), body[end:].lstrip("\n")
    tagged = bool(within.name) and not within.level
    opens = "\n" if tagged and start == within.start else "\n\n"
    middle = content.strip("\n")
    joined = f"{before}{opens}{middle}" if before else middle
    return f"{joined}{chr(10) if tagged else chr(10) * 2}{after}".rstrip("\n") + "\n"
