"""Pass 1: from text to positioned values. YAML 1.2 core schema, every node with its place, all problems at once.

Plain YAML loading silently accepts duplicate keys and reads `on`, `no`, `012` and `1:30` as YAML 1.1 did. Both have
cost users their settings, so this reader composes nodes and resolves the scalars itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

import yaml

from speckit_memory.errors import Problem, Where

Plain = None | bool | int | float | str
Place = tuple[int, int]
"""The line and column where a value ends, counted as those where it begins."""
NOWHERE = (0, 0)
"""The end of a value that is not in a text."""

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
    """A single value, its text if known, and where it ends."""

    value: Plain
    where: Where
    text: str = field(default="", compare=False)
    end: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    where: Where
    end: Place = field(default=NOWHERE, compare=False)
    flow: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One `key: value` of a mapping, and where its key ends."""

    key: str
    where: Where
    value: Node
    key_end: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping with unique text keys, in file order."""

    entries: tuple[MappingEntry, ...]
    where: Where
    end: Place = field(default=NOWHERE, compare=False)
    flow: bool = field(default=False, compare=False)

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
    if len(text) > MOST_CHARACTERS:
        message = f"the YAML has {len(text):,} characters; at most {MOST_CHARACTERS:,} are accepted"
        return None, [Problem("E111", message, where=Where(file, first_line, 1))]
    node, problems = _read(text, file, first_line)
    return node, list(problems)


@lru_cache(maxsize=64)
def _read(text: str, file: str, first_line: int) -> tuple[Node | None, tuple[Problem, ...]]:
    """Cached, as nodes are immutable and a single command reads the shipped pipeline several times."""
    reader = _Reader(file, first_line)
    try:
        return reader.stream(_LOADER(text)), tuple(reader.problems)
    except _UnreadableError as error:
        return None, (error.problem,)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = reader.place(mark) if mark else Where(file, first_line, 1)
        return None, (
            Problem("E111", f"not valid YAML: {error.problem or error.context or 'syntax error'}", where=where),
        )
    except yaml.YAMLError as error:
        reason = str(getattr(error, "reason", "")) or type(error).__name__
        return None, (Problem("E111", f"not valid YAML: {reason}", where=Where(file, first_line, 1)),)


def plain_scalar(text: str) -> Plain:
    """The value of an unquoted scalar; texts that other readers take for booleans, and infinite numbers, are texts."""
    reader = _Reader("", 1)
    value = reader.meaning(text, Where("", 1, 1))
    return text if reader.problems else value


class _UnreadableError(Exception):
    """The text is too large, nested too deeply, or has aliases."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Reader:
    """Makes nodes of the events of the parser, collecting problems on the way."""

    def __init__(self, file: str, first_line: int) -> None:
        self.file = file
        self.first_line = first_line
        self.problems: list[Problem] = []
        self._values = 0
        self._depth = 0

    def place(self, mark: Any) -> Where:
        # Marks count from 0, places from 1.
        return Where(self.file, mark.line + self.first_line, mark.column + 1)

    def stream(self, parser: Any) -> Node | None:
        """The value of the first document; a second one is a problem."""
        nodes: list[Node] = []
        while parser.check_event():
            event = parser.get_event()
            if not isinstance(event, yaml.NodeEvent):
                continue
            before = len(self.problems)
            nodes.append(self._node(parser, event))
            if len(nodes) > 1:
                del self.problems[before:]
        if len(nodes) > 1:
            message = "the file has several YAML documents; one is accepted"
            self.problems.append(Problem("E111", message, where=nodes[1].where))
        return nodes[0] if nodes else None

    def _node(self, parser: Any, event: Any) -> Node:
        where, kind = self.place(event.start_mark), type(event)
        self._count(where)
        if kind is yaml.ScalarEvent:
            return Scalar(self._resolve(event, where), where, event.value, self._after(event.end_mark))
        # Nine aliases of nine, eight levels deep, would expand to 43 million values.
        if kind is yaml.AliasEvent:
            raise _UnreadableError(Problem("E111", "aliases (*name) are not accepted", where=where))
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _UnreadableError(Problem("E111", f"nested deeper than {MAX_DEPTH} levels", where=where))
        node: Sequence | YamlMapping
        if kind is yaml.SequenceStartEvent:
            items: list[Node] = []
            while type(inner := parser.get_event()) is not yaml.SequenceEndEvent:
                items.append(self._node(parser, inner))
            node = Sequence(tuple(items), where, self._end(event, inner, items), event.flow_style)
        else:
            entries: dict[str, MappingEntry] = {}
            while type(inner := parser.get_event()) is not yaml.MappingEndEvent:
                self._entry(parser, inner, entries)
            end = self._end(event, inner, [entry.value for entry in entries.values()])
            node = YamlMapping(tuple(entries.values()), where, end, event.flow_style)
        self._depth -= 1
        return node

    def _end(self, start: Any, last: Any, inside: list[Node]) -> Place:
        """The end of a collection: for a block, the end of its last value."""
        if not start.flow_style and inside:
            return inside[-1].end
        return self._after(last.end_mark if start.flow_style else start.end_mark)

    def _after(self, mark: Any) -> Place:
        return mark.line + self.first_line, mark.column + 1

    def _entry(self, parser: Any, event: Any, entries: dict[str, MappingEntry]) -> None:
        where, before = self.place(event.start_mark), len(self.problems)
        if type(event) is not yaml.ScalarEvent:
            self._node(parser, event)
            self._node(parser, parser.get_event())
            self.problems[before:] = [Problem("E114", "a key must be a single word or text", where=where)]
            return
        self._count(where)
        key: str = event.value
        value = self._node(parser, parser.get_event())
        if key in entries:
            message = f"the key '{key}' occurs twice; the first is at line {entries[key].where.line}"
            self.problems[before:] = [Problem("E112", message, where=where)]
        else:
            entries[key] = MappingEntry(key, where, value, self._after(event.end_mark))

    def _count(self, where: Where) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            raise _UnreadableError(Problem("E111", f"more than {MOST_VALUES:,} keys and values", where=where))

    def _resolve(self, event: Any, where: Where) -> Plain:
        text: str = event.value
        # A quoted or block scalar is a text, even if it looks like a number.
        if event.style:
            return text
        if event.tag not in _KNOWN_TAGS:
            self.problems.append(Problem("E111", f"the tag '{event.tag}' is not accepted", where=where))
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


_KNOWN_TAGS = frozenset((None, "!")) | {
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "value", "merge")
}


def merge_mappings(below: YamlMapping, above: YamlMapping) -> YamlMapping:
    """Both mappings merged, at the place of `above`; `above` wins for keys in both.

    Keys keep the order of `below`, new ones follow. Every value keeps the place where it was written.
    """
    own = {entry.key: entry for entry in above.entries}
    # Popped keys are used; the remaining ones in `own` are new and follow at the end.
    kept = tuple(_upon(entry, own.pop(entry.key, entry)) for entry in below.entries)
    return YamlMapping((*kept, *own.values()), above.where)


def _upon(below: MappingEntry, above: MappingEntry) -> MappingEntry:
    if isinstance(below.value, YamlMapping) and isinstance(above.value, YamlMapping) and below is not above:
        return replace(above, value=merge_mappings(below.value, above.value))
    return above
