"""Reads the block of YAML or TOML at the head of a document (feature I1) and reports its errors with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, Sequence, YamlMapping, plain
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.memory.parsing.classify import CONTEXT_TYPES, MEMORY_TYPES
from speckit_memory.memory.parsing.declarations.causal_links import declared_links
from speckit_memory.memory.parsing.declarations.front_matter_block import find_block, opening_end, read_block
from speckit_memory.memory.parsing.declarations.metadata import MetadataField
from speckit_memory.memory.parsing.limits import LONGEST_FRONT_MATTER, MOST_TRIGGERS, limit_exceeded
from speckit_memory.memory.store.records import Link, Tier, known_time

LONGEST_TRIGGER = 100
"""Characters; a longer phrase never occurs in a question."""

_NAMES = {
    "title": "title",
    "description": "description",
    "trigger_phrases": "triggers",
    "triggers": "triggers",
    "importance_tier": "tier",
    "tier": "tier",
    "importance_weight": "importance_weight",
    "importanceWeight": "importance_weight",
    "context_type": "context_type",
    "contextType": "context_type",
    "memory_type": "memory_type",
    "created": "created_at",
    "created_at": "created_at",
    "date": "created_at",
    "expires": "expires_at",
    "expires_at": "expires_at",
    "causalLinks": "links",
    "causal_links": "links",
}
_FOUND_ELSEWHERE = ("title", "triggers", "links")
"""Declarations that are not indexed as fields, since they are searched or followed in other ways."""
_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}(?:-?\d)?")
"""An ISO 8601 date without a time."""
SECONDS_PER_DAY = 86_400.0
_ALIKE = 0.9
"""Similarity from which an unknown key counts as a misspelt known one; `dates` and `update` are below it."""
_DECLARED = re.compile(rf"^(?:{'|'.join(_NAMES)})[ \t]*(?::(?:[ \t]|$)|=)", re.MULTILINE)
"""A known key; in a block without one, a line of dashes is a break between paragraphs."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The declarations of a document; empty values were not declared. `created_at` and `expires_at` are in epoch
    seconds; `links` maps each link to the place of its target. `fields` are all keys with their values as written,
    except title, trigger phrases and links.

    The body of the document begins at offset `body_start`, in line `body_line`.
    """

    title: str = ""
    description: str = ""
    triggers: tuple[str, ...] = ()
    tier: Tier | None = None
    context_type: str = ""
    memory_type: str = ""
    created_at: float | None = None
    expires_at: float | None = None
    importance_weight: float | None = None
    links: dict[Link, Where] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)
    fields: tuple[MetadataField, ...] = ()
    body_start: int = 0
    body_line: int = 1


def parse(text: str, file: str) -> tuple[FrontMatter, list[Problem]]:
    """Parse the front matter of a text; without front matter, the result declares nothing.

    An unusable value is reported and left out; the rest is used. A block that is not valid YAML, not a mapping or not
    closed is reported and stays part of the body, so that its words can still be found.
    """
    block = find_block(text)
    if block is None:
        opened = opening_end(text)
        return FrontMatter(), _unclosed(text, opened, file) if opened >= 0 else []
    if block.end - block.start > LONGEST_FRONT_MATTER:
        return FrontMatter(), [limit_exceeded("front matter", Where(file, 1, 1))]
    found = read_block(text, block, file)
    node, problems = found.node, found.problems
    body_start = block.body_start
    body_line = text.count("\n", 0, body_start) + 1
    if node is None and not problems:
        return FrontMatter(body_start=body_start, body_line=body_line), []
    if not isinstance(node, YamlMapping):
        where = node.where if node else Where(file, 1, 1)
        return FrontMatter(), problems or [Problem("E090", "front matter must map keys to values", where=where)]
    if not any(entry.key in _NAMES for entry in node.entries):  # it may be prose between two breaks
        if found.lost:
            return FrontMatter(), problems
        if not text.startswith(("---", "+++")):
            return FrontMatter(), []
    declared: dict[str, Any] = {}
    extra: dict[str, str] = {}
    for entry in node.entries:
        name = _NAMES.get(entry.key)
        if name is None:
            extra[entry.key] = _as_extra(entry.value)
            problems += _misspelt(entry)
        elif name in declared:
            problems.append(Problem("E090", f"'{entry.key}' repeats what another key declares", where=entry.where))
        else:
            declared[name] = _READERS[name](entry, problems)
            if (
                name == "context_type" and declared[name] is None
            ):  # kept as extra: it may still tell people the kind of document
                extra[name] = _as_extra(entry.value)
    given = {name: value for name, value in declared.items() if value is not None}
    fields = fields_of(entry for entry in node.entries if _NAMES.get(entry.key) not in _FOUND_ELSEWHERE)
    return FrontMatter(**given, extra=extra, fields=fields, body_start=body_start, body_line=body_line), problems


def fields_of(entries: Iterable[MappingEntry]) -> tuple[MetadataField, ...]:
    """Return the keys with their values as written."""
    return tuple(MetadataField(entry.key, _as_extra(entry.value)) for entry in entries)


def unread(text: str, front: FrontMatter, problems: list[Problem]) -> Problem | None:
    """Return the problem that kept the front matter from being read; None if it was read or there is none."""
    start = opening_end(text)
    if front.body_start or not problems or start < 0:
        return None
    block = find_block(text)
    return problems[0] if not block or _DECLARED.search(text, start, block.end) else None


def epoch_seconds(text: str) -> float | None:
    """Return the time of an ISO 8601 date or date-time, UTC if it has no offset; None for anything else."""
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):  # OverflowError: the offset moves the time out of the calendar
        return None


def _unclosed(text: str, start: int, file: str) -> list[Problem]:
    """Return the problem of a block that begins at `start` and is not closed; none if its first paragraph has no known
    key."""
    end = text.find("\n\n", start - 1)
    if not _DECLARED.search(text, start, len(text) if end < 0 else end + 1):
        return []
    fence = text[:start].strip()
    hint = f"A line {fence} after the last key ends it. Until then it counts as text and declares nothing."
    return [Problem("E090", "front matter is opened here and never closed", hint, where=Where(file, 1, 1))]


def _misspelt(entry: MappingEntry) -> list[Problem]:
    meant = get_close_matches(entry.key.casefold().replace("-", "_"), _NAMES, n=1, cutoff=_ALIKE)
    message = f"'{entry.key}' is not a key of front matter and declares nothing"
    return [Problem("E090", message, f"did you mean '{name}'?", where=entry.where) for name in meant]


def _as_extra(node: Node) -> str:
    """Return the value of a key without a meaning for the store, as written."""
    if isinstance(node, Scalar) and node.text:
        return node.text
    value = plain(node)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(entry: MappingEntry, problems: list[Problem]) -> str | None:
    match entry.value:
        case Scalar(value=None, text="" | "~" | "null" | "Null" | "NULL"):
            return None
        case Scalar(value=value, text=text, where=where):  # as written, so warnings about its YAML type do not apply
            problems[:] = [each for each in problems if each.where != where or each.code not in ("E113", "E114")]
            return " ".join((text or str(value)).split())
    _refuse(entry.value, f"'{entry.key}' must be a text", problems)
    return None


def _triggers(entry: MappingEntry, problems: list[Problem]) -> tuple[str, ...]:
    values: tuple[Node, ...] = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    phrases: list[str] = []
    for value in values:
        word = value
        if isinstance(entry.value, Sequence) and isinstance(value, Scalar) and value.value is None:
            word = Scalar(value.text, value.where)  # in a list, `null` is a word like any other
        phrase = _text(MappingEntry(entry.key, entry.where, word), problems)
        if phrase and len(phrase) > LONGEST_TRIGGER:
            _refuse(
                value, f"a trigger phrase of {len(phrase)} characters; at most {LONGEST_TRIGGER} are accepted", problems
            )
        elif phrase:
            phrases.append(phrase)
        if len(phrases) > MOST_TRIGGERS:
            problems.append(limit_exceeded("trigger", value.where))
            return tuple(dict.fromkeys(phrases[:MOST_TRIGGERS]))
    return tuple(dict.fromkeys(phrases))


def _tier(entry: MappingEntry, problems: list[Problem]) -> Tier | None:
    text = _text(entry, problems)
    if not text:
        return None
    try:
        return Tier(text.lower())
    except ValueError:
        _refuse(entry.value, f"'{text}' is not an importance tier", problems, nearest(text.lower(), Tier))
        return None


def _one_of(names: Iterable[str], what: str) -> Callable[[MappingEntry, list[Problem]], str | None]:
    accepted = frozenset(names)

    def reader(entry: MappingEntry, problems: list[Problem]) -> str | None:
        text = _text(entry, problems)
        if text and text.lower() not in accepted:
            _refuse(entry.value, f"'{text}' is not a {what}", problems, nearest(text.lower(), accepted))
            return None
        return text and text.lower()

    return reader


def _created(entry: MappingEntry, problems: list[Problem]) -> float | None:
    return _time(entry, problems, "creation time: it is left unknown")


def _expires(entry: MappingEntry, problems: list[Problem]) -> float | None:
    """Return the time from which no search finds the document; a date without a time of day expires at its end."""
    time = _time(entry, problems, "expiry time: the document does not expire")
    match entry.value:
        case Scalar(value=str() as text) if time is not None and _DAY.fullmatch(text.strip()):
            return known_time(time + SECONDS_PER_DAY)
    return time


def _time(entry: MappingEntry, problems: list[Problem], what: str) -> float | None:
    text = _text(entry, problems)
    time = epoch_seconds(text) if text else None
    if text and time is None:
        _refuse(entry.value, f"'{text}' is not a date", problems, "Accepted: ISO 8601, such as 2026-01-31.")
    if time is not None and known_time(time) is None:
        message = f"'{text}' is not a possible {what}"
        problems.append(Problem("E095", message, where=entry.value.where))
        return None
    return time


def _weight(entry: MappingEntry, problems: list[Problem]) -> float | None:
    match entry.value:
        case Scalar(value=None):
            return None
        case Scalar(value=int() | float() as number) if not isinstance(number, bool) and 0 <= number <= 1:
            return float(number)
    _refuse(entry.value, f"'{entry.key}' must be a number from 0 to 1", problems)
    return None


def _links(entry: MappingEntry, problems: list[Problem]) -> dict[Link, Where]:
    links, found = declared_links(entry.value)
    problems += found
    return links


def _refuse(node: Node, message: str, problems: list[Problem], hint: str = "") -> None:
    problems.append(Problem("E090", message, hint, where=node.where))


_READERS: dict[str, Callable[[MappingEntry, list[Problem]], object]] = {
    "title": _text,
    "description": _text,
    "triggers": _triggers,
    "tier": _tier,
    "context_type": _one_of(CONTEXT_TYPES, "context type"),
    "memory_type": _one_of(MEMORY_TYPES, "memory type"),
    "created_at": _created,
    "expires_at": _expires,
    "importance_weight": _weight,
    "links": _links,
}
