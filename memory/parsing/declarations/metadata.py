"""What a document says of itself besides its text: author, status, dates, in front matter or at the head of the text.

At the head stand lists and lines of `Status: accepted`, tables of two columns, and sections that are called so
(`## Status`). Their words are searched as those of front matter are; no passage shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from speckit_memory.memory.parsing.dates import MONTHS, dates_in, time_of

VERSION = 2
"""Raise it when other words are found, so that documents are read again."""
LONGEST_HEAD = 12_000
"""Characters of a text in which its head is looked for."""
LONGEST_VALUE = 600
LONGEST_ALONE = 200
"""Characters of a value at the head of a text, and of one that stands there alone; what is longer is prose."""
KNOWN = frozenset(
    """
    approver approvers author authors category champion champions consulted contributors contact created creation-date
    date deciders decider decided-by decision-makers discussion discussions-to editor editors informed issue
    last-modified last-updated modified owner owners owning-sig participating-sigs pep pep-delegate bdfl-delegate
    priority project proposed-by python-version published reviewed-by reviewer reviewers rfc kep adr see-also
    related sponsor stage state status supersedes superseded-by technical-story replaces replaced-by obsoletes
    obsoleted-by submitted tags target team ticket type updated version written-by
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
"""What a head says one of at least; prose has lines with a colon too."""
CREATED = frozenset(("created", "created-at", "creation-date", "date", "published", "submitted"))
"""What says when a document was made."""

_MARKS = r"(?:\*\*|__|\*|_)?"
_FIELD = re.compile(
    rf"(?P<indent>[ ]{{0,3}})(?:[-*+][ \t]+|>[ \t]?|:(?=\w))?{_MARKS}(?P<name>[^\W\d_][\w /-]{{0,38}}?)"
    rf"{_MARKS}[ \t]*:(?![:/\w]){_MARKS}[ \t]*(?P<value>.*)"
)
_FURTHER = re.compile(r"[ \t]+\S|[ \t]*[-*+][ \t]+\S")
_ROW = re.compile(r"[ ]{0,3}\|?(?P<name>(?:[^|\\\n]|\\.)*)\|(?P<value>(?:[^|\\\n]|\\.)*)\|?[ \t]*")
_RULE = re.compile(r"[ ]{0,3}\|?[ \t]*:?-+:?[ \t]*\|[ \t]*:?-+:?[ \t]*\|?[ \t]*")
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(?P<text>.*?)[ \t#]*")
_UNDERLINED = re.compile(r"(?P<text>\S[^\n]*)\n[ ]{0,3}(=+|-+)[ \t]*\n?")
_COMMENT = re.compile(r"<!--(?![ \t]*/?ANCHOR).*?-->[ \t]*", re.DOTALL)
_BLOCK = re.compile(
    r"[ ]{0,3}#{1,6}[ \t][^\n]*(?:\n|\Z)|[^\n]*[^\s][^\n]*(?:\n(?![ ]{0,3}#{1,6}[ \t])[^\n]*[^\s][^\n]*)*(?:\n|\Z)"
)
_BLANK = re.compile(r"(?:[ \t]*\n)*")
_BREAK = re.compile(r"[ ]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")


class Field(NamedTuple):
    """Something that a document says of itself, as it is written."""

    name: str
    value: str

    @property
    def plain_name(self) -> str:
        """The name as it is compared: `**Created at**` and `created_at` are `created-at`."""
        return _plain(self.name)


class Head(NamedTuple):
    """The fields at the head of a text, and the offset behind them, 0 where there are none."""

    fields: tuple[Field, ...] = ()
    end: int = 0


def head_of(text: str) -> Head:
    """What a text says of itself before it begins. Line ends must be "\\n"."""
    fields: list[Field] = []
    end, section = 0, ""
    for start, block in _blocks(text[:LONGEST_HEAD]):
        behind = start + len(block)
        if behind == LONGEST_HEAD < len(text):
            break  # it may go on
        if (heading := _heading(block)) is not None:
            level, name = heading
            if section or not ((level == 1 and not fields) or _plain(name) in KNOWN):
                break
            section = name if _plain(name) in KNOWN else ""
            continue
        if section and len(block) <= LONGEST_VALUE:
            found: list[Field] | None = [Field(section, " ".join(block.split()))]
        else:
            found = None if section else _table(block) or _lines(block)
        section = ""
        if found:
            fields += found
            end = behind
        elif not (_COMMENT.fullmatch(block.strip()) or _BREAK.fullmatch(block.strip())):
            break
    return Head(tuple(fields), end)


def words_of(fields: Iterable[Field]) -> str:
    """What is searched of fields: their names and values, and dates in the ways in which people write them.

    Each way stands behind the name, so that `created in March 2024` is found as a phrase.
    """
    return "\n".join(line for field in fields for line in (f"{field.name} {_bare(field.value)}", *_dated(field)))


def created_in(fields: Iterable[Field]) -> float | None:
    """When a document was made by what it says, in seconds since 1970: the first day that a field named so holds."""
    days = (date for field in fields if field.plain_name in CREATED for date in dates_in(field.value))
    return next((time for day in days if (time := time_of(day)) is not None), None)


def _dated(field: Field) -> Iterator[str]:
    name = "created" if field.plain_name in CREATED else field.name
    for year, number, day in dates_in(field.value):
        month = MONTHS[number - 1]
        if day:
            yield f"{name} {year}-{number:02}-{day:02}\n{name} {month} {day} {year}\n{name} {day} {month} {year}"
        else:
            yield f"{name} {year}-{number:02}"
        yield f"{name} {month} {year}"


def _bare(value: str) -> str:
    """A value without what makes a list of it."""
    return re.sub(r"[\[\]{}\"]|,(?=[ \t])", " ", value)


def _plain(name: str) -> str:
    return re.sub(r"[\s_/]+", "-", name.strip().strip("*_:").strip().casefold())


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """What stands between blank lines, with its offset; a comment is one by itself."""
    at = 0
    while at < len(text):
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        match = _COMMENT.match(text, at) or _BLOCK.match(text, at)
        if match is None or match.end() == at:
            return
        yield match.start(), match[0]
        at = match.end()


def _heading(block: str) -> tuple[int, str] | None:
    """The level and the text of a heading that is the whole block."""
    if match := _HEADING.fullmatch(block.rstrip("\n")):
        return len(match[1]), match["text"]
    if match := _UNDERLINED.fullmatch(block):
        return 1 if match[2][0] == "=" else 2, match["text"]
    return None


def _lines(block: str) -> list[Field] | None:
    """The fields of a block that is nothing but fields and their further lines."""
    fields: list[Field] = []
    for line in block.rstrip("\n").split("\n"):
        match = _FIELD.fullmatch(line)
        nested = bool(fields) and _FURTHER.match(line)
        if match and not (nested and match["indent"] and not fields[-1].value):
            fields.append(Field(match["name"].strip(), match["value"].strip()))
        elif nested:
            name, value = fields[-1]
            fields[-1] = Field(name, f"{value} {line.strip()}".strip())
        else:
            return None
    return _told(fields)


def _table(block: str) -> list[Field] | None:
    """The fields of a table of two columns."""
    lines = block.rstrip("\n").split("\n")
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]):
        return None
    rows = [_ROW.fullmatch(line) for line in (lines[0], *lines[2:])]
    found = [Field(row["name"].strip().strip("*_"), row["value"].strip()) for row in rows if row]
    return _told([field for field in found if field.name]) if all(rows) else None


def _told(fields: list[Field]) -> list[Field] | None:
    """The fields, unless none of them is known or one is longer than a field is."""
    longest = LONGEST_VALUE if len(fields) > 1 else LONGEST_ALONE
    known = any(_plain(name) in KNOWN for name, _ in fields)
    return fields if known and all(len(value) <= longest for _, value in fields) else None
