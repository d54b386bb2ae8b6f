"""Converts plain Python data to the nodes of the YAML reader, with paths of keys as positions."""

from __future__ import annotations

from collections import abc
from math import isfinite

from speckit_memory.config.yaml.reader import (
    MAX_DEPTH,
    MOST_VALUES,
    MappingEntry,
    Node,
    Plain,
    Scalar,
    Sequence,
    YamlMapping,
)
from speckit_memory.errors import Problem, Where
from speckit_memory.errors.echo import abridge


def from_plain(value: object, file: str) -> tuple[Node, list[Problem]]:
    """The value as a node, and problems for parts that YAML cannot express, which become null.

    The input is copied: later changes of it have no effect. `file` is its name in problems.
    """
    reader = _Reader(file)
    node = reader.convert(value, "", 0)
    if reader.values > MOST_VALUES:
        message = f"more than {MOST_VALUES:,} keys and values"
        return node, [Problem("E114", message, where=Where(file, 1, 0, ""))]
    return node, reader.problems


class _Reader:
    """Converts values, counting them and collecting problems on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.values = 0
        self.problems: list[Problem] = []

    def convert(self, value: object, path: str, depth: int) -> Node:
        self.values += 1
        # There are no lines: the running number of the value keeps problems in order.
        where = Where(self.file, self.values, 0, path)
        if self.values > MOST_VALUES:
            return Scalar(None, where)
        if isinstance(value, abc.Mapping | list | tuple):
            if depth == MAX_DEPTH:
                self.problems.append(Problem("E114", f"nested deeper than {MAX_DEPTH} levels", where=where))
                return Scalar(None, where)
            if isinstance(value, abc.Mapping):
                return YamlMapping(tuple(self._entries(value, where, depth)), where)
            items = (self.convert(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(value))
            return Sequence(tuple(items), where)
        return Scalar(self._single(value, where), where)

    def _entries(self, value: abc.Mapping[object, object], where: Where, depth: int) -> abc.Iterator[MappingEntry]:
        for key, item in value.items():
            if not isinstance(key, str):
                self.problems.append(Problem("E114", f"a key must be a text; found {_display(key)}", where=where))
                continue
            inside = self.convert(item, f"{where.path}.{key}" if where.path else key, depth + 1)
            yield MappingEntry(str(key), inside.where, inside)

    def _single(self, value: object, where: Where) -> Plain:
        """The value as the plain type that it has or derives from, as members of enumerations do."""
        match value:
            case None | bool():
                return value
            case int():
                return int(value)
            case float() if isfinite(value):
                return float(value)
            case float():
                self.problems.append(Problem("E114", f"{value!r} is not a finite number", where=where))
            case str():
                # A plain str, also for members of string enumerations, whose `str()` may be overridden.
                return str.__str__(value)
            case _:
                accepted = "accepted: texts, numbers, true, false, None, lists and mappings"
                self.problems.append(Problem("E114", f"found {_display(value)}; {accepted}", where=where))
        return None


def _display(value: object) -> str:
    return f"{abridge(repr(value))}, of the type {type(value).__name__}"
