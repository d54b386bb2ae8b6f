"""Reads the metadata of a document (author, status, dates) at the head of its text.

It recognises lists and lines such as `Status: accepted`, two-column tables, and sections such as `## Status`. Their
words are searched like those of front matter; no passage shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from speckit_memory.memory.parsing.dates import MONTHS, dates_in, time_of

VERSION = 2
"""Raise this when the recognised fields change, so that documents are read again."""
LONGEST_HEAD = 12_000
"""Characters of a text in which its head is searched for."""
LONGEST_VALUE = 600
LONGEST_ALONE = 200
"""Characters of a value, and of the only value of a block; a longer one is prose."""
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
"""Field names of which a head must have at least one, since prose also has lines with a colon."""
CREATED = frozenset(("created", "created-at", "creation-date", "date", "published", "submitted"))
"""Field names of the creation date."""

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


class MetadataField(NamedTuple):
    """A metadata field of a document, as written."""

    name: str
    value: str

    @property
    def plain_name(self) -> str:
        """The normalised name: `**Created at**` and `created_at` become `created-at`."""
        return _plain(self.name)


class Head(NamedTuple):
    """The fields at the head of a text, and the offset after them, 0 if there are none."""

    fields: tuple[MetadataField, ...] = ()
    end: int = 0


def head_of(text: str) -> Head:
    """Return the metadata fields at the head of a text. Line ends must be "\\n"."""
    fields: list[MetadataField] = []
    end, section = 0, ""
    for start, block in _blocks(text[:LONGEST_HEAD]):
        behind = start + len(block)
        if behind == LONGEST_HEAD < len(text):
            break  # the block may continue beyond the limit
        if (heading := _heading(block)) is not None:
            level, name = heading
            # The title may precede the head; any other heading ends it, unless it is a field name such as "Status".
            if section or not ((level == 1 and not fields) or _plain(name) in KNOWN):
                break
            section = name if _plain(name) in KNOWN else ""
            continue
        if section and len(block) <= LONGEST_VALUE:
            found: list[MetadataField] | None = [MetadataField(section, " ".join(block.split()))]
        else:
            found = None if section else _table(block) or _lines(block)
        section = ""
        if found:
            fields += found
            end = behind
        elif not (_COMMENT.fullmatch(block.strip()) or _BREAK.fullmatch(block.strip())):
            break
    return Head(tuple(fields), end)


def words_of(fields: Iterable[MetadataField]) -> str:
    """Return the searchable text of fields: names and values, and dates in several common formats.

    Each format follows the name, so that `created in March 2024` matches as a phrase.
    """
    return "\n".join(line for field in fields for line in (f"{field.name} {_bare(field.value)}", *_dated(field)))


def created_in(fields: Iterable[MetadataField]) -> float | None:
    """Return the first date in a creation field, in seconds since 1970."""
    days = (date for field in fields if field.plain_name in CREATED for date in dates_in(field.value))
    return next((time for day in days if (time := time_of(day)) is not None), None)


def _dated(field: MetadataField) -> Iterator[str]:
    name = "created" if field.plain_name in CREATED else field.name
    for year, number, day in dates_in(field.value):
        month = MONTHS[number - 1]
        if day:
            yield f"{name} {year}-{number:02}-{day:02}\n{name} {month} {day} {year}\n{name} {day} {month} {year}"
        else:
            yield f"{name} {year}-{number:02}"
        yield f"{name} {month} {year}"


def _bare(value: str) -> str:
    """Return a value without list punctuation."""
    return re.sub(r"[\[\]{}\"]|,(?=[ \t])", " ", value)


def _plain(name: str) -> str:
    return re.sub(r"[\s_/]+", "-", name.strip().strip("*_:").strip().casefold())


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the blocks between blank lines with their offsets; a comment is a separate block."""
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
    """Return the level and the text of a block that is a heading, else None."""
    if match := _HEADING.fullmatch(block.rstrip("\n")):
        return len(match[1]), match["text"]
    if match := _UNDERLINED.fullmatch(block):
        return 1 if match[2][0] == "=" else 2, match["text"]
    return None


def _lines(block: str) -> list[MetadataField] | None:
    """Return the fields of a block of only fields and their continuation lines, else None."""
    fields: list[MetadataField] = []
    for line in block.rstrip("\n").split("\n"):
        match = _FIELD.fullmatch(line)
        nested = bool(fields) and _FURTHER.match(line)
        # An indented field below an empty one is a nested value of it, not a field.
        if match and not (nested and match["indent"] and not fields[-1].value):
            fields.append(MetadataField(match["name"].strip(), match["value"].strip()))
        elif nested:
            name, value = fields[-1]
            fields[-1] = MetadataField(name, f"{value} {line.strip()}".strip())
        else:
            return None
    return _known_fields(fields)


def _table(block: str) -> list[MetadataField] | None:
    """Return the fields of a two-column table, else None."""
    lines = block.rstrip("\n").split("\n")
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]):
        return None
    rows = [_ROW.fullmatch(line) for line in (lines[0], *lines[2:])]
    found = [MetadataField(row["name"].strip().strip("*_"), row["value"].strip()) for row in rows if row]
    return _known_fields([field for field in found if field.name]) if all(rows) else None


def _known_fields(fields: list[MetadataField]) -> list[MetadataField] | None:
    """Return the fields, or None if no name is known or a value is too long."""
    longest = LONGEST_VALUE if len(fields) > 1 else LONGEST_ALONE
    known = any(_plain(name) in KNOWN for name, _ in fields)
    return fields if known and all(len(value) <= longest for _, value in fields) else None
