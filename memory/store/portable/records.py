"""Reads memories as records that refer to other memories by key (feature M14).

Records are independent of row ids: two stores with the same facts about a memory have equal records.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.memory.store.checkpoints.table_map import MEMORIES, Form, forms
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.portable.tables import EDGE, EDGES, LIVED, PORTABLE, SAID, Portable
from speckit_memory.memory.store.tables.memories.absences import PRESENT

Value = str | int | float | None
Row = dict[str, Any]
GONE = "gone"
"""Key of a reference, by number, to a deleted memory that still has rows."""


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """A memory without its text: columns of `memories`, and rows by table."""

    memory: Row
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def lived(self) -> tuple[object, ...]:
        """The facts learned from use; equal for records between which an import need not choose."""
        return ({name: self.memory.get(name) for name in LIVED}, self.rows)

    def clock(self) -> tuple[float, ...]:
        """A sort key, greater for the record with later facts: by the time of the last act, then by the number of
        judgements, the last review and the number of uses."""
        acts = [
            float(row[column] or 0)
            for table in PORTABLE
            for row in self.rows.get(table.name, ())
            if table.no_act is None or row.get(table.no_act[0]) != table.no_act[1]
            for column in table.clock
        ]
        counts = ("validation_count", "last_review", "access_count")
        return (max(acts, default=0.0), *(float(self.memory.get(name) or 0) for name in counts))


@dataclass(frozen=True, slots=True)
class Records:
    """Records of memories by key, in the order of ids, and rows by table that belong to no existing memory."""

    memories: dict[str, MemoryRows]
    loose: dict[str, list[Row]]


def read(
    connection: Connection,
    *,
    inside: Callable[[str], bool] = lambda _folder: True,
    only: Iterable[int] | None = None,
    digests: Mapping[str, str] | None = None,
    root: str | None = None,
) -> Records:
    """Reads the records of memories.

    Args:
        connection: A connection in a read transaction.
        inside: Whether the memories of a folder are included; absent memories are not.
        only: Ids of the memories to read, absent ones included; None for all.
        digests: Replacements of content hashes.
        root: Name of a root, for which rows that belong to no memory are read too if they lie inside; None for none.

    Returns:
        The records.
    """
    columns = (*SAID, *LIVED)
    chosen = None if only is None else integers(sorted(only))
    scope = f"WHERE {PRESENT}" if only is None else "WHERE id IN (SELECT value FROM carray(?))"
    keys = dict(rows(connection, "SELECT id, key FROM memories"))
    found: dict[int, MemoryRows] = {}
    for number, folder, *values in rows(
        connection,
        f"SELECT id, folder, {', '.join(columns)} FROM memories {scope} ORDER BY id",
        () if only is None else (chosen,),
    ):
        if inside(folder):
            found[number] = MemoryRows(dict(zip(columns, values, strict=True)))
    whole = root is not None
    reading = _Reading(connection, keys, digests or {})
    loose: dict[str, list[Row]] = {}
    shapes = {form.kept.name: form for form in forms(connection)}
    for table in PORTABLE:
        others: list[Row] = []
        for owner, mine in reading.of(table, shapes[table.name], root):
            # A row of a memory that exists but was not chosen belongs to neither part.
            if owner in found:
                found[owner].rows.setdefault(table.name, []).extend(mine)
            elif whole and owner not in keys:
                others += (row for row in mine if _lies(row, inside))
        if others:
            loose[table.name] = sorted(others, key=_text)
    return Records({keys[number]: record for number, record in found.items()}, loose)


class _Reading:
    def __init__(self, connection: Connection, keys: Mapping[int, str], digests: Mapping[str, str]) -> None:
        self._connection = connection
        self._keys = keys
        self._digests = digests
        self._gone: dict[int, int] = {}
        self._edges: dict[int, tuple[int, Row]] = {}

    def of(self, table: Portable, form: Form, root: str | None) -> Iterator[tuple[int, list[Row]]]:
        """Yields the rows of a table by the id of their memory; 0 for none."""
        grouped: defaultdict[int, list[tuple[Any, Row]]] = defaultdict(list)
        references = {each.column: each.parent for each in form.references}
        order = form.own or ", ".join(map(_quoted, form.columns))
        sql = f"SELECT {', '.join(map(_quoted, form.columns))} FROM {table.name} WHERE {table.where} ORDER BY {order}"
        for values in rows(self._connection, sql):
            raw = dict(zip(form.columns, values, strict=True))
            if table.name == "source_paths" and raw["root"] != root:
                continue
            owner = raw[table.owner] if table.owner else 0
            row: Row = {}
            for column, value in raw.items():
                if column in table.without or (column == table.owner and owner in self._keys):
                    continue
                if references.get(column) == MEMORIES:
                    row[column] = self._named(value)
                elif column in table.digests:
                    row[column] = self._digests.get(value, value)
                else:
                    row[column] = value
            if references.get(table.owner) == EDGES:
                owner, edge = self._edges[owner]
                row = {name: edge[name] for name in EDGE} | {k: v for k, v in row.items() if k != table.owner}
            # `PORTABLE` lists edges before the tables that refer to them.
            if table.name == EDGES:
                self._edges[raw[form.own]] = (owner, row)
            grouped[owner].append((raw.get(form.own), row))
        for owner, mine in grouped.items():
            yield owner, _arranged(mine, table)

    def _named(self, number: int) -> str | dict[str, int]:
        key = self._keys.get(number)
        return key if key is not None else {GONE: self._gone.setdefault(number, len(self._gone) + 1)}


def _arranged(found: list[tuple[Any, Row]], table: Portable) -> list[Row]:
    """Rows sorted by content, so that their order does not depend on ids. Rows of an `ordered` table keep their order;
    rows that refer to one another do so by position."""
    if table.ordered:
        return [row for _, row in found]
    if not table.numbered:
        return sorted((row for _, row in found), key=_text)
    places = {number: place for place, (number, _) in enumerate(found)}
    return [row | {name: places.get(row[name]) for name in table.numbered} for _, row in found]


def _lies(row: Row, inside: Callable[[str], bool]) -> bool:
    """Whether a row that belongs to no memory lies inside, by its folder or path if it has one."""
    return inside(str(row.get("folder", row.get("path", ""))))


def _quoted(column: str) -> str:
    return f'"{column}"'


def _text(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)
