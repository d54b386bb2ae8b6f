"""Writes records of memories from another store into this one, inside one transaction (feature M14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.checkpoints.numbering import draw
from speckit_memory.memory.store.checkpoints.table_map import MEMORIES, Form, forms
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.portable.records import GONE, MemoryRows, Row
from speckit_memory.memory.store.portable.tables import EDGE, LIVED, PORTABLE, SAID, Portable
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables.memories import judgements
from speckit_memory.memory.store.tables.memories.promotions import PROMOTED_FROM

Key = str


@dataclass(frozen=True, slots=True)
class IncomingMemory:
    """A stored memory and the record to be written for it. `said` tells whether the columns that follow from its
    document are written too, since the document is unchanged."""

    memory: int
    key: str
    record: MemoryRows
    said: bool


@dataclass(slots=True)
class ImportOutcome:
    """The result of `apply`: `left_out` is the number of rows that refer to a missing memory."""

    left_out: int = 0


def apply(
    txn: Transaction, arriving: Sequence[IncomingMemory], loose: Mapping[str, Sequence[Row]], root: str
) -> ImportOutcome:
    """Replaces the records of memories and adds rows that belong to no memory.

    Args:
        txn: The transaction, which the caller must roll back on an error.
        arriving: The memories with their new records.
        loose: Rows that belong to no memory, by table.
        root: Name of the root to which imported sources are assigned.

    Returns:
        The number of rows left out.

    Raises:
        SpeckitError: E065 for invalid values.
    """
    writing = _Writing(txn, root)
    try:
        for each in arriving:
            writing.facts(each)  # before `clear`, since it reads the stored promotion
            writing.clear(each.memory)
        for table in PORTABLE:
            writing.rows_of(table, arriving)
            for row in loose.get(table.name, ()):
                writing.loose(table, row)
        writing.attribute()
    except (apsw.ConstraintError, apsw.MismatchError, TypeError, ValueError, KeyError, OverflowError) as error:
        raise SpeckitError("E065", f"{writing.at} holds a value that no store has written: {error}") from error
    return writing.applied


class _Writing:
    def __init__(self, txn: Transaction, root: str) -> None:
        self.applied = ImportOutcome()
        self.at = "the export"
        self._txn = txn
        self._connection = connection = txn.connection
        self._root = root
        self._forms: dict[str, Form] = {form.kept.name: form for form in forms(connection)}
        self._ids: dict[str, int] = dict(rows(connection, "SELECT key, id FROM memories"))
        self._gone: dict[int, int] = {}
        self._declared: dict[int, Tier] = {}

    def clear(self, memory: int) -> None:
        """Deletes the rows of a memory; edges from other memories to it stay."""
        for table in reversed(PORTABLE):
            if self._forms[table.name].owners:
                self._connection.execute(
                    f"DELETE FROM {table.name} WHERE {table.owner} = ? AND {table.where}", (memory,)
                )

    def facts(self, each: IncomingMemory) -> None:
        """Writes the columns of `memories`. A promotion applies to any text whose declared tier can be promoted."""
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
        self._declared[each.memory] = Tier(declared)
        if not each.said:
            promoted = bool(each.record.rows.get("promotions")) and declared in PROMOTED_FROM
            tier = str(Tier.CRITICAL if promoted else declared)
            connection.execute("UPDATE memories SET tier = ? WHERE id = ?", (tier, each.memory))

    def attribute(self) -> None:
        """Records for every promotion the tier to which undoing it returns: that of the document in this store."""
        judgements.attribute(self._txn)
        for memory, tier in self._declared.items():
            judgements.declare(self._txn, memory, tier)

    def rows_of(self, table: Portable, arriving: Sequence[IncomingMemory]) -> None:
        """Writes the rows of one table; rows that refer to one another in the order in which they were made."""
        waiting = [
            (each, place, row) for each in arriving for place, row in enumerate(each.record.rows.get(table.name, ()))
        ]
        if table.numbered:
            waiting.sort(key=lambda one: float(one[2][table.clock[0]]))
        # numbers: new row ids by (memory, position). References among rows are filled in after all are inserted.
        numbers: dict[tuple[int, int], int] = {}
        for each, place, row in waiting:
            self.at = each.key
            if self._insert(table, row, each.memory):
                numbers[each.memory, place] = self._connection.last_insert_rowid()
        for each, place, row in waiting if table.numbered else ():
            number = numbers.get((each.memory, place))
            for column in table.numbered:
                other = numbers.get((each.memory, row[column])) if row[column] is not None else None
                if number is not None and other is not None:
                    self._connection.execute(f"UPDATE {table.name} SET {column} = ? WHERE id = ?", (other, number))

    def loose(self, table: Portable, row: Row) -> None:
        """Writes a row that belongs to no memory, unless a row with its key is as late or later."""
        self.at = table.name
        owner = row.get(table.owner)
        if isinstance(owner, Mapping):
            if not self._is_there(table, row):
                self._insert(table, row, self._of_gone(owner))
            return
        if table.name == "source_paths":
            row = row | {"root": self._root}
        if table.later:
            there = self._with_its_key(table, row)
            if there is not None and there >= tuple(float(row.get(name) or 0) for name in table.later):
                return
        self._insert(table, row, None)

    def _insert(self, table: Portable, row: Row, owner: int | None) -> bool:
        form = self._forms[table.name]
        known = set(form.columns) - table.without.keys() | ({"root"} if table.name == "source_paths" else set())
        # Rows of such a table belong to an edge, which a record identifies by the columns EDGE.
        through_edge = table.owner != "" and not _is_memory(form, table.owner)
        if unknown := sorted(set(row) - known - (set(EDGE) if through_edge else set())):
            raise ValueError(f"{table.name} has no '{unknown[0]}'")
        values: Row = {}
        for column, told in row.items():
            if _is_memory(form, column) and column != table.owner:
                if not isinstance(told, str | Mapping):
                    raise TypeError(f"the {column} of {table.name} names no memory")
                found = self._ids.get(told) if isinstance(told, str) else self._of_gone(told)
                if found is None:
                    self.applied.left_out += 1
                    return False
                values[column] = found
            elif column not in table.numbered and not (through_edge and column in EDGE):
                values[column] = told
        if through_edge:
            owner = self._edge(owner, row)
            if owner is None:
                return False
        if owner is not None:
            values[table.owner] = owner
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({marks})", tuple(values.values())
        )
        return True

    def _edge(self, source: int | None, row: Row) -> int | None:
        target = self._ids.get(str(row["target_id"]))
        found = "SELECT id FROM causal_edges WHERE source_id = ? AND target_id = ? AND relation = ?"
        return value(self._connection, found, (source, target, row["relation"]))  # type: ignore[no-any-return]  # an id

    def _of_gone(self, told: Mapping[str, Any]) -> int:
        """An id that no memory has or will have, the same for each deleted memory."""
        number = int(told[GONE])
        if number not in self._gone:
            self._gone[number] = draw(self._connection, 1)[0]
        return self._gone[number]

    def _is_there(self, table: Portable, row: Row) -> bool:
        """Whether an equal row of a deleted memory exists, so that a repeated import does not add another."""
        values = {name: told for name, told in row.items() if name != table.owner}
        equal = " AND ".join(f'"{name}" IS ?' for name in values)
        sql = f"SELECT 1 FROM {table.name} WHERE {equal} AND {table.owner} NOT IN (SELECT id FROM {MEMORIES})"
        return value(self._connection, sql, tuple(values.values())) is not None

    def _with_its_key(self, table: Portable, row: Row) -> tuple[float, ...] | None:
        keys = [each[1] for each in rows(self._connection, f"PRAGMA table_info({table.name})") if each[5]]
        equal = " AND ".join(f'"{key}" = ?' for key in keys)
        found = rows(
            self._connection,
            f"SELECT {', '.join(table.later)} FROM {table.name} WHERE {equal}",
            tuple(row[key] for key in keys),
        )
        return tuple(float(each or 0) for each in found[0]) if found else None


def _is_memory(form: Form, column: str) -> bool:
    return any(each.column == column and each.parent == MEMORIES for each in form.references)
