"""A connection to PostgreSQL with the interface of the SQLite driver's, as far as the product uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import psycopg

from speckit_memory.memory.store.postgres import virtual_tables
from speckit_memory.memory.store.postgres.adapters import Bindings, parameters
from speckit_memory.memory.store.postgres.postings import PostingChanges
from speckit_memory.memory.store.postgres.session import BEGIN_PART, WorkspaceSession
from speckit_memory.memory.store.postgres.statements import Statement, Table, translate

_WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")
_FEW = (" WHERE ", " LIMIT ", " GROUP BY ", "DISTINCT", "PRAGMA_", " UNION ")
_INSERT = re.compile(r"INSERT INTO (\w+) \( (.*?) \) VALUES \( ((?:[^()]|\( \))*) \)")
ROWS_OF_A_STATEMENT = 500
FEW_ROWS = 8
"""Fewer rows than these are sent in a statement each."""
_TRANSACTIONS = {"BEGIN": False, "BEGIN DEFERRED": False, "BEGIN IMMEDIATE": True}


class Connection(WorkspaceSession):
    """A connection of one thread to a workspace. It commits by itself outside of BEGIN."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], tables: Mapping[str, Table], workspace: int
    ) -> None:
        """Connects by `connect`, which is called again when the session has ended."""
        super().__init__(connect, workspace)
        self.row_trace: Callable[[Any, tuple[Any, ...]], Any] | None = None
        self._tables = tables
        self.anew: dict[int, list[tuple[Any, ...]]] = {}
        """Words that a comparison of texts made anew, by memory: see `virtual_tables`."""
        self.words = PostingChanges()
        self._translated: dict[str, list[Statement]] = {}

    def execute(self, sql: str, bindings: Bindings | None = ()) -> Cursor:
        """Runs statements and returns the rows of the last one."""
        return Cursor(self).execute(sql, bindings)

    def executemany(self, sql: str, bindings: Iterable[Bindings]) -> Cursor:
        """Runs a statement with each of these bindings, in few round trips."""
        return Cursor(self).executemany(sql, bindings)

    def read_ahead(self, sql: str, bindings: Bindings) -> None:
        """Has the rows of a query read along with those of the next one in this read transaction."""
        for statement in self.statements(sql):
            self.expect(statement.sql, parameters(statement, bindings))

    @property
    def next_commit(self) -> int:
        """The number of the commit of the write transaction that began last."""
        return self._count + 1

    def send_rows(self, sql: str, many: list[list[Any]]) -> None:
        """Runs a statement with each of these values. The rows of a table that numbers them are sent in few statements,
        since each statement looks for the highest number and counts in its triggers."""
        found = _INSERT.fullmatch(sql) if len(many) >= FEW_ROWS else None
        table = self._tables.get(found[1]) if found else None
        if found is None or table is None or len(table.key) > 1 or table.key[0] in found[2].replace('"', "").split():
            self.send_many(sql, many)
            return
        name, columns, values = found.groups()
        ((first,),) = self.fetch(f"SELECT next_id('{name}', '{table.key[0]}')", []).rows
        for start in range(0, len(many), ROWS_OF_A_STATEMENT):
            some = many[start : start + ROWS_OF_A_STATEMENT]
            rows = ", ".join(
                f"({first + start + at}, {_shifted(values, at * len(row))})" for at, row in enumerate(some)
            )
            text = f"INSERT INTO {name} ({table.key[0]}, {columns}) VALUES {rows}"
            self.fetch(text, [value for row in some for value in row])
        self._changed = len(many)

    def changes(self) -> int:
        """Number of rows that the last INSERT, UPDATE or DELETE changed."""
        self._send_waiting()
        return self._changed

    def cursor(self) -> Cursor:
        """A cursor, which runs statements."""
        return Cursor(self)

    def pragma(self, name: str, value: Any = None) -> Any:
        """The size of the store for `page_count` and `page_size`, 0 for settings of files."""
        if value is None and name in ("page_count", "page_size"):
            return self.execute(f"SELECT {name} FROM pragma_{name}").get
        return 0

    def statements(self, sql: str) -> list[Statement]:
        """The translation of a text."""
        found = self._translated.get(sql)
        if found is None:
            found = self._translated[sql] = translate(sql, self._tables)
        return found


class Cursor:
    """Runs statements and iterates over the rows of the last one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._columns: tuple[str, ...] = ()

    def execute(self, sql: str, bindings: Bindings | None = ()) -> Self:
        """Runs statements and keeps the rows of the last one."""
        handled = virtual_tables.answer(self.connection, sql, bindings or ())
        if handled is not None:
            self._rows = iter(handled)
            return self
        sql, bindings = virtual_tables.without_matches(self.connection, sql, bindings or ())
        for statement in self.connection.statements(sql):
            self._run(statement, bindings)
        return self

    def executemany(self, sql: str, bindings: Iterable[Bindings]) -> Self:
        """Runs a statement with each of these bindings."""
        given = list(bindings)
        if virtual_tables.insert_many(self.connection, sql, given):
            return self
        if virtual_tables.concerns(sql):
            for one in given:
                self.execute(sql, one)
            return self
        (statement,) = self.connection.statements(sql)
        self.connection.send_rows(statement.sql, [parameters(statement, one) for one in given])
        return self

    def __iter__(self) -> Iterator[Any]:
        trace = self.connection.row_trace
        return self._rows if trace is None else (trace(self, row) for row in self._rows)

    def __next__(self) -> Any:
        return next(self._rows)

    def fetchall(self) -> list[Any]:
        """The remaining rows."""
        return list(self)

    def fetchone(self) -> Any:
        """The next row, None after the last one."""
        return next(iter(self), None)

    @property
    def get(self) -> Any:
        """The first row, as a plain value if it has one column; None without a row."""
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    @property
    def description(self) -> tuple[tuple[str, ...], ...]:
        """The names of the columns."""
        return tuple((name,) for name in self._columns)

    def _run(self, statement: Statement, bindings: Bindings | None) -> None:
        connection = self.connection
        words = statement.sql.upper()
        if words.startswith("ROLLBACK"):
            connection.words.clear()
        elif words.startswith(("SAVEPOINT", "RELEASE", "COMMIT")):
            virtual_tables.send_words(connection)
        if words in _TRANSACTIONS:
            connection.begin(writes=_TRANSACTIONS[words])
        elif words == "COMMIT":
            connection.commit()
        elif words == "ROLLBACK":
            connection.rollback()
        else:
            values = parameters(statement, bindings or ())
            if words.startswith("ROLLBACK TO"):
                connection.undo_part(statement.sql)
                return
            if connection.is_writing and (statement.sql == BEGIN_PART or _only_deletes(words)):
                connection.send_later(statement.sql, values)
                return
            if connection.in_transaction and _reads_table(words):
                self._columns, self._rows = connection.stream(statement.sql, values)
                return
            answer = connection.fetch(statement.sql, values)
            if answer.columns:
                self._columns, self._rows = answer.columns, iter(answer.rows)
            if words.startswith(_WRITES):
                connection._changed = answer.changed


def _shifted(values: str, distance: int) -> str:
    """The same values with placeholders whose numbers are greater."""
    return re.sub(r"\$(\d+)", lambda number: f"${int(number[1]) + distance}", values)


def _only_deletes(words: str) -> bool:
    """Whether a statement deletes rows, which cannot fail before the transaction ends, and returns nothing."""
    return words.startswith("DELETE") and "RETURNING" not in words


def _reads_table(words: str) -> bool:
    """Whether a query reads a whole table, so that there may be more rows than should be held at once."""
    return words.startswith("SELECT") and "ORDER BY" in words and not any(part in words for part in _FEW)
