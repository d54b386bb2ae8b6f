"""Pass 1: from text to positioned values. YAML 1.2 core schema, every node with its place, all problems at once.

Plain YAML loading silently accepts duplicate keys and reads `on`, `no`, `012` and `1:30` as YAML 1.1 did. Both have
cost users their settings, so this reader composes nodes and resolves the scalars itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

import yaml

from speckit_memory.errors import Problem, Where

Plain = None | bool | int | float | str

MAX_DEPTH = 40
MOST_CHARACTERS = 1 << 20
MOST_VALUES = 10_000
"""Keys, values, lists and mappings of one text. Files written by hand have a few hundred."""
LONGEST_NUMBER = 300
"""Characters. Longer numbers are not settings, and Python refuses to convert very long ones."""
# The loader of libyaml if PyYAML was built with it, else the one in Python.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEGINS_NUMBER = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_CONSTANTS: dict[str, Plain] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
AMBIGUOUS = frozenset(
    form for word in ("yes", "no", "on", "off", "y", "n") for form in (word, word.upper(), word.capitalize())
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value, and its text if known."""

    value: Plain
    where: Where
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One `key: value` of a mapping."""

    key: str
    where: Where
    value: Node


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping with unique text keys, in file order."""

    entries: tuple[MappingEntry, ...]
    where: Where

    def get(self, key: str) -> MappingEntry | None:
        """The entry of a key, None when it is absent."""
        return next((entry for entry in self.entries if entry.key == key), None)


Node = Scalar | Sequence | YamlMapping
N = TypeVar("N", Scalar, Sequence, YamlMapping, Node)


def plain(node: Node) -> object:
    """The node as plain Python data, without positions."""
    match node:
        case Scalar(value=value):
            return value
        case Sequence(items=items):
            return [plain(item) for item in items]
        case YamlMapping(entries=entries):
            return {entry.key: plain(entry.value) for entry in entries}


def find(node: Node, path: tuple[str | int, ...]) -> Node:
    """The value at `path`, or its deepest existing ancestor."""
    for part in path:
        match node:
            case YamlMapping() if isinstance(part, str) and (entry := node.get(part)):
                node = entry.value
            case Sequence(items=items) if isinstance(part, int) and part < len(items):
                node = items[part]
            case _:
                break
    return node


def locate(node: Node, path: tuple[str | int, ...]) -> Where:
    """The place of the value at `path`, or of its deepest existing ancestor."""
    return find(node, path).where


def key_place(node: Node, path: tuple[str | int, ...]) -> Where:
    """The place of the last key of `path`, or of the deepest existing ancestor of its value."""
    inside, key = find(node, path[:-1]), str(path[-1])
    entry = inside.get(key) if isinstance(inside, YamlMapping) else None
    return entry.where if entry else locate(node, path)


def without(node: N, path: tuple[str | int, ...]) -> N:
    """The node without the entry or list item at `path`."""
    first, rest = path[0], path[1:]
    if isinstance(node, YamlMapping):
        kept = (
            replace(entry, value=without(entry.value, rest)) if entry.key == first else entry
            for entry in node.entries
            if rest or entry.key != first
        )
        return replace(node, entries=tuple(kept))
    if isinstance(node, Sequence):
        members = (
            without(item, rest) if place == first else item
            for place, item in enumerate(node.items)
            if rest or place != first
        )
        return replace(node, items=tuple(members))
    return node


def read(text: str, file: str, first_line: int = 1) -> tuple[Node | None, list[Problem]]:
    """The value of a YAML text and all problems with it.

    `file` and `first_line` are only for positions: front matter starts below the first line of its file. None means an
    empty document or one too broken to read. The first value of a duplicate key is kept, and the key reported.
    """
    reader = _Reader(file, first_line)
    if len(text) > MOST_CHARACTERS:
        message = f"the YAML has {len(text):,} characters; at most {MOST_CHARACTERS:,} are accepted"
        return None, [Problem("E111", message, where=Where(file, first_line, 1))]
    # Fast path: nearly all texts have no problems.
    sound = _sound(text, file, first_line)
    if sound is not None:
        return sound, []
    try:
        # Check depth and size on the event stream first: composing recurses, and aliases multiply.
        problem = None if _small(text) else reader.survey(text)
        if problem:
            return None, [problem]
        # compose_all, not safe_load: nodes keep their positions, and scalars their text.
        documents = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = reader.place(mark) if mark else Where(file, first_line, 1)
        problem = Problem("E111", f"not valid YAML: {error.problem or error.context or 'syntax error'}", where=where)
        return None, [problem]
    except (yaml.YAMLError, RecursionError) as error:
        reason = str(getattr(error, "reason", "")) or type(error).__name__
        return None, [Problem("E111", f"not valid YAML: {reason}", where=Where(file, first_line, 1))]
    if len(documents) > 1:
        where = reader.place(documents[1].start_mark)
        reader.problems.append(Problem("E111", "the file has several YAML documents; one is accepted", where=where))
    if not documents or documents[0] is None:
        return None, reader.problems
    return reader.convert(documents[0]), reader.problems


def plain_scalar(text: str) -> Plain:
    """The value of an unquoted scalar; texts that other readers take for booleans, and infinite numbers, are texts."""
    reader = _Reader("", 1)
    value = reader.meaning(text, Where("", 1, 1))
    return text if reader.problems else value


@lru_cache(maxsize=64)
def _sound(text: str, file: str, first_line: int) -> Node | None:
    """The value of a text without problems, in one pass; None for any other text, which is then read in full.

    Anchors, custom tags and several documents are left to the full read as well. Results are cached, as nodes are
    immutable and a single command reads the shipped pipeline several times.
    """
    reader = _Reader(file, first_line)
    waiting: list[_Collection] = []
    # The innermost open collection; `waiting` is the stack of all of them.
    inner: _Collection | None = None
    found: list[Node] = []
    values = 0
    try:
        parser = _LOADER(text)
        while parser.check_event():
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                values += 1
                if event.anchor is not None or event.tag is not None or values > MOST_VALUES:
                    return None
                mark = event.start_mark
                # Marks count from 0, places from 1.
                where = Where(file, mark.line + first_line, mark.column + 1)
                if inner is not None and inner.names and inner.key is None:
                    if not inner.named(event.value, where):
                        return None
                    continue
                # A quoted or block scalar is a text, even if it looks like a number.
                value = event.value if event.style else reader.meaning(event.value, where)
                node: Node = Scalar(value, where, event.value)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node = waiting.pop().node()
                inner = waiting[-1] if waiting else None
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                values += 1
                if event.anchor is not None or values > MOST_VALUES or len(waiting) == MAX_DEPTH:
                    return None
                # A collection as a key: the full read reports it.
                if inner is not None and inner.names and inner.key is None:
                    return None
                inner = _Collection(reader.place(event.start_mark), names=kind is yaml.MappingStartEvent)
                waiting.append(inner)
                continue
            # An alias; all other nodes were met above.
            elif isinstance(event, yaml.NodeEvent):
                return None
            else:
                continue
            if inner is not None:
                inner.add(node)
            else:
                found.append(node)
    except (yaml.YAMLError, RecursionError):
        return None
    return found[0] if len(found) == 1 and not reader.problems else None


class _Collection:
    """A list or a mapping (`names`) that is not complete yet."""

    __slots__ = ("entries", "items", "key", "names", "seen", "where")

    def __init__(self, where: Where, *, names: bool) -> None:
        self.where = where
        self.names = names
        self.items: list[Node] = []
        self.entries: list[MappingEntry] = []
        self.seen: set[str] = set()
        self.key: tuple[str, Where] | None = None

    def named(self, key: str, where: Where) -> bool:
        """Set the key of the next value; whether it is a new one."""
        # The size of the set tells whether the key was new, with one look-up.
        self.key, before = (key, where), len(self.seen)
        self.seen.add(key)
        return len(self.seen) > before

    def add(self, node: Node) -> None:
        if self.key is None:
            self.items.append(node)
        else:
            self.entries.append(MappingEntry(*self.key, node))
            self.key = None

    def node(self) -> Node:
        return YamlMapping(tuple(self.entries), self.where) if self.names else Sequence(tuple(self.items), self.where)


def _small(text: str) -> bool:
    """Whether a text is too short for too many values, and too plain for deep nesting or aliases.

    Nearly all front matter is, and is then parsed only once. Every value takes at least half a character, and every
    level needs one of these characters.
    """
    return 2 * len(text) < MOST_VALUES and not any(sign in text for sign in "*&") and _signs(text) < MAX_DEPTH


def _signs(text: str) -> int:
    return sum(map(text.count, "[{-:?"))


class _Reader:
    """Converts composed nodes, collecting problems on the way."""

    def __init__(self, file: str, first_line: int) -> None:
        self.file = file
        self.first_line = first_line
        self.problems: list[Problem] = []

    def place(self, mark: Any) -> Where:
        return Where(self.file, mark.line + self.first_line, mark.column + 1)

    def survey(self, text: str) -> Problem | None:
        """The problem that prevents composing a text, found without recursion: composing recurses in the C library.

        Aliases are refused: nine of nine, eight levels deep, would expand to 43 million values.
        """
        depth = values = 0
        for event in yaml.parse(text, Loader=_LOADER):
            values += isinstance(event, yaml.NodeEvent)
            if values > MOST_VALUES:
                message = f"more than {MOST_VALUES:,} keys and values"
                return Problem("E111", message, where=self.place(event.start_mark))
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                return Problem("E111", f"nested deeper than {MAX_DEPTH} levels", where=self.place(event.start_mark))
            if isinstance(event, yaml.AliasEvent):
                return Problem("E111", "aliases (*name) are not accepted", where=self.place(event.start_mark))
        return None

    def convert(self, node: yaml.Node) -> Node:
        where = self.place(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return YamlMapping(tuple(self._entries(node)), where)
        if isinstance(node, yaml.SequenceNode):
            return Sequence(tuple(self.convert(item) for item in node.value), where)
        assert isinstance(node, yaml.ScalarNode)  # the third and last kind
        return Scalar(self._resolve(node, where), where, node.value)

    def _entries(self, node: yaml.MappingNode) -> Iterator[MappingEntry]:
        seen: dict[str, Where] = {}
        for key_node, value_node in node.value:
            where = self.place(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem("E114", "a key must be a single word or text", where=where))
                continue
            key = key_node.value
            if key in seen:
                message = f"the key '{key}' occurs twice; the first is at line {seen[key].line}"
                self.problems.append(Problem("E112", message, where=where))
                continue
            seen[key] = where
            yield MappingEntry(key, where, self.convert(value_node))

    def _resolve(self, node: yaml.ScalarNode, where: Where) -> Plain:
        text: str = node.value
        if node.style:
            return text
        if node.tag not in _KNOWN_TAGS:
            self.problems.append(Problem("E111", f"the tag '{node.tag}' is not accepted", where=where))
            return text
        return self.meaning(text, where)

    def meaning(self, text: str, where: Where) -> Plain:
        """The value of an unquoted scalar."""
        if text in _CONSTANTS:
            # The empty text is among the constants, so text[0] exists below.
            return _CONSTANTS[text]
        if text in AMBIGUOUS:
            self.problems.append(
                Problem("E113", f"'{text}' is a boolean to some YAML readers and a text to others", where=where)
            )
            return text
        if text[0] not in _BEGINS_NUMBER:
            return text
        if len(text) <= LONGEST_NUMBER:
            # The patterns end in \Z: `match` with $ would accept a line end.
            if _INTEGER.match(text):
                return int(text)
            if _BASED.match(text):
                # YAML's 0o and 0x prefixes are also Python's.
                return int(text, 0)
            if _FLOAT.match(text) and isfinite(float(text)):
                return float(text)
        if _INFINITE.match(text) or _FLOAT.match(text) or _BASED.match(text):
            self.problems.append(Problem("E114", f"'{text[:40]}' is not a finite number", where=where))
            return None
        return text


_KNOWN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "value", "merge")
)
