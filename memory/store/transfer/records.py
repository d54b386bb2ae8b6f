"""Memories as records that refer to others by key, for exchange between stores (feature M14).

Records are independent of row ids: two stores with the same facts about a memory have equal records.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import UNFIT_VALUE, Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables.memories import judgements
from speckit_memory.memory.store.tables.memories.absences import PRESENT
from speckit_memory.memory.store.tables.memories.promotions import PROMOTED_FROM
from speckit_memory.memory.store.transfer.arrival import draw
from speckit_memory.memory.store.transfer.copying import Ids, delete, put
from speckit_memory.memory.store.transfer.table_map import EDGE, EDGES, LIVED, MEMORIES, PORTABLE, SAID, Form, forms

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


@dataclass(frozen=True, slots=True)
class IncomingMemory:
    """A stored memory and the record to be written for it. `said` tells whether the columns that follow from its
    document are written too, since the document is unchanged."""

    memory: int
    key: str
    record: MemoryRows
    said: bool


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
    scope = f"WHERE {PRESENT}" if only is None else "WHERE id IN (SELECT value FROM carray(?))"
    keys = dict(rows(connection, "SELECT id, key FROM memories"))
    found = {
        number: MemoryRows(dict(zip(columns, values, strict=True)))
        for number, folder, *values in rows(
            connection,
            f"SELECT id, folder, {', '.join(columns)} FROM memories {scope} ORDER BY id",
            () if only is None else (integers(sorted(only)),),
        )
        if inside(folder)
    }
    reader = _Reader(connection, keys, digests or {}, root)
    loose: dict[str, list[Row]] = {}
    for form in _portable(connection):
        others: list[Row] = []
        for owner, mine in reader.rows_by_memory(form).items():
            # A row of a memory that exists but was not chosen belongs to neither part.
            if owner in found:
                found[owner].rows[form.name] = mine
            elif root is not None and owner not in keys:
                # Rows that belong to no memory lie inside by their folder or path if they have one.
                others += (row for row in mine if inside(str(row.get("folder", row.get("path", "")))))
        if others:
            loose[form.name] = sorted(others, key=_text)
    return Records({keys[number]: record for number, record in found.items()}, loose)


def apply(txn: Transaction, arriving: Sequence[IncomingMemory], loose: Mapping[str, Sequence[Row]], root: str) -> int:
    """Replaces the records of memories and adds rows that belong to no memory.

    Args:
        txn: The transaction, which the caller must roll back on an error.
        arriving: The memories with their new records.
        loose: Rows that belong to no memory, by table.
        root: Name of the root to which imported sources are assigned.

    Returns:
        The number of rows left out because they refer to a missing memory.

    Raises:
        SpeckitError: E065 for invalid values.
    """
    writer = _Writer(txn, root)
    try:
        return writer.write(arriving, loose)
    except (*UNFIT_VALUE, TypeError, ValueError, KeyError, OverflowError) as error:
        raise SpeckitError("E065", f"{writer.at} holds a value that no store has written: {error}") from error


class _Reader:
    def __init__(
        self, connection: Connection, keys: Mapping[int, str], digests: Mapping[str, str], root: str | None
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._digests = digests
        self._root = root
        self._gone: dict[int, int] = {}
        self._edges: dict[int, tuple[int, Row]] = {}

    def rows_by_memory(self, form: Form) -> dict[int, list[Row]]:
        """The rows of a table by the id of their memory; 0 for none."""
        table = form.table
        columns = [f'"{column}"' for column in form.columns]
        memories = {each.column for each in form.references if each.parent == MEMORIES}
        grouped: defaultdict[int, dict[int, Row]] = defaultdict(dict)
        order = form.own or ", ".join(columns)
        sql = f"SELECT {', '.join(columns)} FROM {form.name} WHERE {table.where} ORDER BY {order}"
        for number, values in enumerate(rows(self._connection, sql)):
            raw = dict(zip(form.columns, values, strict=True))
            if table.root and raw[table.root] != self._root:
                continue
            owner = raw[form.owner.column] if form.owner else 0
            left_out = {form.own, table.root}
            if form.owner and (owner in self._keys or form.owner.parent == EDGES):
                left_out.add(form.owner.column)
            row = {
                column: self._named(told)
                if column in memories
                else self._digests.get(told, told)
                if column in table.digests
                else told
                for column, told in raw.items()
                if column not in left_out
            }
            if form.owner and form.owner.parent == EDGES:
                owner, edge = self._edges[owner]
                row = {name: edge[name] for name in EDGE} | row
            elif form.name == EDGES:
                self._edges[raw[form.own]] = (owner, row)
            grouped[owner][raw.get(form.own, number)] = row
        return {owner: _arranged(mine, form) for owner, mine in grouped.items()}

    def _named(self, number: int) -> str | dict[str, int]:
        key = self._keys.get(number)
        return key if key is not None else {GONE: self._gone.setdefault(number, len(self._gone) + 1)}


class _Writer:
    def __init__(self, txn: Transaction, root: str) -> None:
        self.at = "the export"
        self._txn = txn
        self._connection = txn.connection
        self._root = root
        self._gone: dict[int, int] = {}

    def write(self, arriving: Sequence[IncomingMemory], loose: Mapping[str, Sequence[Row]]) -> int:
        declared = {each.memory: self._facts(each) for each in arriving}  # before the stored promotions are deleted
        portable, memories = _portable(self._connection), [each.memory for each in arriving]
        for form in reversed(portable):
            if form.owners:  # edges from other memories stay
                delete(self._connection, form, memories, form.owners[:1], form.table.where)
        # In these rows memories have their keys as ids, deleted ones numbers, and other rows what identifies them.
        ids: Ids = {MEMORIES: dict(rows(self._connection, "SELECT key, id FROM memories"))}
        left_out = 0
        for form in portable:
            missing = put(self._connection, form, self._rows_of(form, arriving), ids)
            left_out += missing if form.owner and form.owner.parent == MEMORIES else 0
            put(self._connection, form, self._loose(form, loose.get(form.name, ()), ids[MEMORIES]), ids)
        judgements.attribute(self._txn)
        for memory, tier in declared.items():
            # The tier to which undoing a promotion returns is that of the document in this store.
            judgements.declare(self._txn, memory, tier)
        return left_out

    def _facts(self, each: IncomingMemory) -> Tier:
        """Writes the columns of `memories`; returns the declared tier. A promotion applies to any text whose declared
        tier can be promoted."""
        self.at = each.key
        connection, told = self._connection, each.record.memory
        names = [name for name in (*(SAID if each.said else ()), *LIVED) if name in told]
        declared = judgements.declared_tier(connection, each.memory) or value(
            connection, "SELECT tier FROM memories WHERE id = ?", (each.memory,)
        )
        if names:
            columns = ", ".join(f"{name} = ?" for name in names)
            bound = (*(told[name] for name in names), each.memory)
            connection.execute(f"UPDATE memories SET {columns} WHERE id = ?", bound)
        if not each.said:
            promoted = bool(each.record.rows.get("promotions")) and declared in PROMOTED_FROM
            tier = str(Tier.CRITICAL if promoted else declared)
            connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (tier, each.memory))
        return Tier(declared)

    def _rows_of(self, form: Form, arriving: Sequence[IncomingMemory]) -> Iterator[tuple[list[Any], bool]]:
        """The rows of a table; rows that refer to one another in the order in which they were made."""
        coming = [
            (each, place, row) for each in arriving for place, row in enumerate(each.record.rows.get(form.name, ()))
        ]
        if form.among:
            coming.sort(key=lambda one: float(one[2][form.table.clock[0]]))
        for each, place, row in coming:
            self.at = each.key
            yield self._values(form, row, each.key, place), True

    def _loose(self, form: Form, found: Sequence[Row], memories: dict[Any, int]) -> Iterator[tuple[list[Any], bool]]:
        """Rows that belong to no memory, without those that a row with their key makes obsolete: an equal row of a
        deleted memory, so that a repeated import does not add another, or a row that is as late or later."""
        for row in found:
            self.at = form.name
            if not form.owner:
                values = self._values(form, row | ({form.table.root: self._root} if form.table.root else {}), "", 0)
                if not self._is_as_late(form, dict(zip(form.columns, values, strict=True))):
                    yield values, True
                continue
            gone = int(row[form.owner.column][GONE])
            told = {column: value for column, value in row.items() if column != form.owner.column}
            values = self._values(form, told, gone, 0)
            if not self._is_there(form, told):
                if gone not in memories:
                    memories[gone] = draw(self._connection, 1)[0]  # an id that no memory has or will have
                yield values, True

    def _values(self, form: Form, row: Row, owner: str | int, place: int) -> list[Any]:
        """The values of a row by column, with a source id for it and for the rows to which it refers."""
        if owner and not form.owner:
            raise ValueError(f"{form.name} belongs to no memory")
        through_edge = form.owner is not None and form.owner.parent == EDGES
        ours = {form.own, form.owner.column if form.owner else ""}
        if unknown := sorted(row.keys() - (set(form.columns) - ours | (set(EDGE) if through_edge else set()))):
            raise ValueError(f"{form.name} has no '{unknown[0]}'")
        values = {column: row.get(column) for column in form.columns}
        for each in form.references[1:]:
            if each.parent == MEMORIES and not isinstance(row.get(each.column), str):
                raise TypeError(f"the {each.column} of {form.name} names no memory")
            if each.parent == form.name and row.get(each.column) is not None:
                values[each.column] = (owner, row[each.column])
        if form.own:
            values[form.own] = (owner, *(row[name] for name in EDGE)) if form.name == EDGES else (owner, place)
        if form.owner:
            values[form.owner.column] = (owner, *(row[name] for name in EDGE)) if through_edge else owner
        return [values[column] for column in form.columns]

    def _is_there(self, form: Form, told: Row) -> bool:
        equal = " AND ".join(f'"{name}" IS ?' for name in told)
        sql = f"SELECT 1 FROM {form.name} WHERE {equal} AND {form.owners[0]} NOT IN (SELECT id FROM {MEMORIES})"
        return value(self._connection, sql, tuple(told.values())) is not None

    def _is_as_late(self, form: Form, row: Row) -> bool:
        if not form.table.later:
            return False
        equal = " AND ".join(f'"{name}" = ?' for name in form.key)
        sql = f"SELECT {', '.join(form.table.later)} FROM {form.name} WHERE {equal}"
        found = rows(self._connection, sql, tuple(row[name] for name in form.key))
        times = tuple(float(row[name] or 0) for name in form.table.later)
        return any(tuple(float(each or 0) for each in stored) >= times for stored in found)


def _portable(connection: Connection) -> list[Form]:
    return [form for form in forms(connection) if form.table.exported]


def _arranged(found: Mapping[int, Row], form: Form) -> list[Row]:
    """Rows by id, sorted by content, so that their order does not depend on ids. Rows of an `ordered` table keep their
    order; rows that refer to one another do so by position."""
    if form.among:
        places = {number: place for place, number in enumerate(found)}
        return [row | {name: places.get(row[name]) for name in form.among} for row in found.values()]
    return list(found.values()) if form.table.ordered else sorted(found.values(), key=_text)


def _text(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)
