"""A connection to PostgreSQL with the interface of the SQLite driver's, as far as the product uses it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import apsw
import numpy as np
import psycopg
from psycopg import errors, postgres
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader

from speckit_memory.memory.store.postgres import virtual_tables
from speckit_memory.memory.store.postgres.schema import Table
from speckit_memory.memory.store.postgres.statements import Statement, translate

Binding = Any
Bindings = Sequence[Binding] | Mapping[str, Binding]
INT8_ARRAY = 1016
TEXT_ARRAY = 1009
LOCK = 0x53504B4D
"""First key of the advisory locks of writers; the second is the number of the workspace."""
_LIST = type(apsw.carray(("",)))
_values = apsw.Connection(":memory:")
"""Reads lists that were made for SQLite, which the driver keeps to itself."""


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
        return super().dump(int(obj))


class _IntegersDumper(Dumper):
    format = Format.TEXT
    oid = INT8_ARRAY

    def dump(self, obj: Integers) -> bytes:
        return b"{%s}" % ",".join(map(str, obj)).encode()


class _TextsDumper(Dumper):
    format = Format.TEXT
    oid = TEXT_ARRAY

    def dump(self, obj: Texts) -> bytes:
        quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in obj)
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
            return apsw.SQLITE_TXN_NONE
        return apsw.SQLITE_TXN_WRITE if self._writes else apsw.SQLITE_TXN_READ

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
        if virtual_tables.insert_many(self.connection, sql, given):
            return self
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
        with translated_errors(), self._cursor() as cursor:
            cursor.execute(statement.sql, parameters(statement, bindings or ()), binary=True)
            if cursor.description is not None:
                self._columns = tuple(column.name for column in cursor.description)
                self._rows = iter(cursor.fetchall())
            if words.startswith(("INSERT", "UPDATE", "DELETE", "WITH")):
                connection._changed = max(0, cursor.rowcount)

    def _cursor(self) -> psycopg.RawCursor[Any]:
        return psycopg.RawCursor(self.connection.session)


def parameters(statement: Statement, bindings: Bindings) -> list[Binding]:
    """The values of a statement's placeholders, in the form that the driver takes."""
    if isinstance(bindings, Mapping):
        return [_bound(bindings[str(name)]) for name in statement.parameters]
    # names count in the order in which they come
    return [_bound(bindings[at if isinstance(name, str) else name]) for at, name in enumerate(statement.parameters)]


def _bound(value: Binding) -> Binding:
    if isinstance(value, _LIST):
        found = [row[0] for row in _values.execute("SELECT value FROM carray(?)", (value,))]
        return Texts(found) if found and isinstance(found[0], str) else Integers(found)
    if isinstance(value, enum.Enum):
        return str(value)
    return value


_ERRORS: tuple[tuple[type[psycopg.Error], type[apsw.Error]], ...] = (
    (errors.LockNotAvailable, apsw.BusyError),
    (errors.DeadlockDetected, apsw.BusyError),
    (errors.SerializationFailure, apsw.BusyError),
    (errors.ReadOnlySqlTransaction, apsw.ReadOnlyError),
    (errors.InsufficientPrivilege, apsw.PermissionsError),
    (errors.DiskFull, apsw.FullError),
    (errors.IntegrityError, apsw.ConstraintError),
    (errors.QueryCanceled, apsw.InterruptError),
    (errors.ProgrammingError, apsw.SQLError),
    (errors.DataError, apsw.MismatchError),
    (errors.OperationalError, apsw.IOError),
)
"""The driver's errors, and those of the SQLite driver that mean the same."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raises the errors that the product expects of a connection."""
    try:
        yield
    except psycopg.Error as error:
        kind = next((made for found, made in _ERRORS if isinstance(error, found)), apsw.Error)
        raise kind(str(error)) from error
