"""A connection to PostgreSQL with the interface of the SQLite driver's, as far as the product uses it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import Any, Self

import numpy as np
import psycopg
from psycopg import errors, postgres
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader

from speckit_memory.memory.store.file.guarding import failures
from speckit_memory.memory.store.file.guarding.queries import listed
from speckit_memory.memory.store.postgres import virtual_tables
from speckit_memory.memory.store.postgres.schema import Table
from speckit_memory.memory.store.postgres.statements import Statement, translate

Binding = Any
Bindings = Sequence[Binding] | Mapping[str, Binding]
INT8_ARRAY = 1016
TEXT_ARRAY = 1009
LOCK = 0x53504B4D
"""First key of the advisory locks of writers; the second is the number of the workspace."""


class Integers(list[int]):
    """Integers for one placeholder."""


class Texts(list[str]):
    """Texts for one placeholder."""


class VectorBytes(bytes):
    """A vector in native float32, for a column of pgvector."""


class _BoolLoader(Loader):
    """Truth values are 0 and 1 in SQLite."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(data != b"\0")


class _NumericLoader(NumericBinaryLoader):
    """Sums of integers are integers in SQLite."""

    def load(self, data: Buffer) -> Any:
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else float(found)


class _VectorLoader(Loader):
    """Vectors as the bytes of native float32; pgvector sends the number of dimensions, two zero bytes and big-endian
    numbers."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return np.frombuffer(bytes(data), ">f4", offset=4).astype(np.float32).tobytes()


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> bytes:
        return (len(obj) // 4).to_bytes(2, "big") + b"\0\0" + np.frombuffer(obj, np.float32).astype(">f4").tobytes()


class _BoolDumper(Int8Dumper):
    def dump(self, obj: bool) -> Buffer:
        return super().dump(int(obj)) or b""


class _IntegersDumper(Dumper):
    format = Format.TEXT
    oid = INT8_ARRAY

    def dump(self, obj: Integers) -> bytes:
        return b"{%s}" % ",".join(map(str, obj)).encode()


class _TextsDumper(Dumper):
    format = Format.TEXT
    oid = TEXT_ARRAY

    def dump(self, obj: Texts) -> bytes:
        quoted = (
            '"' + text.replace("\0", NO_CHARACTER).replace("\\", "\\\\").replace('"', '\\"') + '"' for text in obj
        )
        return ("{" + ",".join(quoted) + "}").encode()


def adapters(vector: int) -> AdaptersMap:
    """The conversions of values of a connection; `vector` is the type number of pgvector's type in its database."""
    made = AdaptersMap(postgres.adapters)
    made.register_dumper(int, Int8Dumper)
    made.register_dumper(bool, _BoolDumper)
    made.register_dumper(Integers, _IntegersDumper)
    made.register_dumper(Texts, _TextsDumper)
    made.register_dumper(VectorBytes, type("VectorDumper", (_VectorDumper,), {"oid": vector}))
    made.register_loader("bool", _BoolLoader)
    made.register_loader("numeric", _NumericLoader)
    made.register_loader(vector, _VectorLoader)
    return made


class Connection:
    """One session of a workspace. Each connection belongs to one thread, and commits by itself outside of BEGIN."""

    def __init__(self, session: psycopg.Connection[Any], tables: Mapping[str, Table], workspace: int) -> None:
        self.session = session
        self.workspace = workspace
        self.row_trace: Callable[[Any, tuple[Any, ...]], Any] | None = None
        self._tables = tables
        self.anew: dict[int, list[tuple[Any, ...]]] = {}
        """Words that a comparison of texts made anew, by memory: see `virtual_tables`."""
        self._translated: dict[str, list[Statement]] = {}
        self._writes = False
        self._changed = 0
        self._busy_timeout_ms = 10_000

    def execute(self, sql: str, bindings: Bindings | None = ()) -> Cursor:
        """Runs statements and returns the rows of the last one."""
        return Cursor(self).execute(sql, bindings)

    def executemany(self, sql: str, bindings: Iterable[Bindings]) -> Cursor:
        """Runs a statement with each of these bindings, in few round trips."""
        return Cursor(self).executemany(sql, bindings)

    def cursor(self) -> Cursor:
        """A cursor, which runs statements."""
        return Cursor(self)

    def changes(self) -> int:
        """Number of rows that the last INSERT, UPDATE or DELETE changed."""
        return self._changed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.session.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def txn_state(self) -> int:
        """The state of the transaction, by the driver's constants."""
        if not self.in_transaction:
            return failures.NO_TRANSACTION
        return failures.WRITING if self._writes else failures.READING

    def set_busy_timeout(self, milliseconds: int) -> None:
        """How long the next transactions wait for another writer."""
        self._busy_timeout_ms = milliseconds

    def pragma(self, name: str, value: Any = None) -> Any:
        """The size of the store for `page_count` and `page_size`, 0 for settings of files."""
        if value is None and name in ("page_count", "page_size"):
            return self.execute(f"SELECT {name} FROM pragma_{name}").get
        return 0

    @property
    def filename(self) -> str:
        """The address of the database, for messages."""
        return f"{self.session.info.dbname} at {self.session.info.host}"

    def interrupt(self) -> None:
        """Cancels the statement that another thread runs on this connection."""
        self.session.cancel_safe()

    def close(self) -> None:
        """Closes the session. May be repeated."""
        self.session.close()

    def begin(self, *, writes: bool) -> None:
        """Begins a transaction: one snapshot to read, or the lock of the workspace's one writer."""
        with translated_errors():
            if not writes:
                self.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            else:
                timeout = max(1, self._busy_timeout_ms)
                self.session.execute(
                    f"BEGIN; SET LOCAL lock_timeout = {timeout}; SELECT pg_advisory_xact_lock({LOCK}, {self.workspace})"
                    "; SET LOCAL lock_timeout = 0"
                )
        self._writes = writes

    def statements(self, sql: str) -> list[Statement]:
        """The translation of a text."""
        found = self._translated.get(sql)
        if found is None:
            found = self._translated[sql] = translate(sql, self._tables)
        return found


NO_CHARACTER = "\ufdd0"
"""Stands for NUL in what is looked for: Unicode keeps it from being a character, so that nothing is found."""
_WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")
BLOCK = 2_000
"""Rows of a whole table that are read at a time."""
_FEW = (" WHERE ", " LIMIT ", " GROUP BY ", "DISTINCT", "PRAGMA_", " UNION ")
_numbers = count()
_TRANSACTIONS = {"BEGIN": False, "BEGIN DEFERRED": False, "BEGIN IMMEDIATE": True}


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
        if virtual_tables.concerns(sql):
            for one in given:
                self.execute(sql, one)
            return self
        (statement,) = self.connection.statements(sql)
        with translated_errors(), self._cursor() as cursor:
            cursor.executemany(statement.sql, [parameters(statement, one) for one in given])
            self.connection._changed = max(0, cursor.rowcount)
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
        if words in _TRANSACTIONS:
            connection.begin(writes=_TRANSACTIONS[words])
            return
        values = parameters(statement, bindings or ())
        if connection.in_transaction and _reads_table(words):
            self._stream(statement.sql, values)
            return
        with translated_errors(), self._cursor() as cursor:
            cursor.execute(statement.sql, values, binary=True)
            if cursor.description is not None:
                self._columns = tuple(column.name for column in cursor.description)
                self._rows = iter(cursor.fetchall())
            if words.startswith(_WRITES):
                connection._changed = max(0, cursor.rowcount)

    def _stream(self, sql: str, values: list[Binding]) -> None:
        """Reads rows as they are asked for, in blocks, from a cursor of the server."""
        with translated_errors():
            cursor = psycopg.RawServerCursor(self.connection.session, f"rows{next(_numbers)}")
            cursor.itersize = BLOCK
            cursor.execute(sql, values, binary=True)
            self._columns = tuple(column.name for column in cursor.description or ())
            first = cursor.fetchmany(BLOCK)
            if len(first) < BLOCK:
                cursor.close()
        self._rows = chain(first, _remaining(cursor)) if len(first) == BLOCK else iter(first)

    def _cursor(self) -> psycopg.RawCursor[Any]:
        return psycopg.RawCursor(self.connection.session)


def _reads_table(words: str) -> bool:
    """Whether a query reads a whole table, so that there may be more rows than should be held at once."""
    return words.startswith("SELECT") and "ORDER BY" in words and not any(part in words for part in _FEW)


def _remaining(cursor: psycopg.RawServerCursor[Any]) -> Iterator[tuple[Any, ...]]:
    with translated_errors(), cursor:
        yield from cursor


def parameters(statement: Statement, bindings: Bindings) -> list[Binding]:
    """The values of a statement's placeholders, in the form that the driver takes.

    Names count in the order in which they come. Raises ConstraintError for NUL in a text to be stored.
    """
    if isinstance(bindings, Mapping):
        bound = [_bound(bindings[str(name)]) for name in statement.parameters]
    else:
        bound = [
            _bound(bindings[at if isinstance(name, str) else name]) for at, name in enumerate(statement.parameters)
        ]
    if any(isinstance(value, str) and "\0" in value for value in bound):
        if statement.sql.startswith(_WRITES[:3]):
            raise failures.ConstraintError("PostgreSQL takes no text with the character NUL")
        bound = [value.replace("\0", NO_CHARACTER) if isinstance(value, str) else value for value in bound]
    return bound


def _bound(value: Binding) -> Binding:
    found = listed(value)
    if found is not None:
        return Texts(map(str, found)) if found and isinstance(found[0], str) else Integers(map(int, found))
    if isinstance(value, enum.Enum):
        return str(value)
    return value


_ERRORS: tuple[tuple[type[psycopg.Error], type[failures.DriverError]], ...] = (
    (errors.LockNotAvailable, failures.BusyError),
    (errors.DeadlockDetected, failures.BusyError),
    (errors.SerializationFailure, failures.BusyError),
    (errors.ReadOnlySqlTransaction, failures.ReadOnlyError),
    (errors.InsufficientPrivilege, failures.PermissionsError),
    (errors.DiskFull, failures.FullError),
    (errors.IntegrityError, failures.ConstraintError),
    (errors.QueryCanceled, failures.InterruptError),
    (errors.ProgrammingError, failures.SQLError),
    (errors.DataError, failures.MismatchError),
    (errors.OperationalError, failures.ReadingError),
)
"""The driver's errors, and those of the SQLite driver that mean the same."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raises the errors that the product expects of a connection."""
    try:
        yield
    except psycopg.Error as error:
        kind = next((made for found, made in _ERRORS if isinstance(error, found)), failures.DriverError)
        raise kind(str(error)) from error
