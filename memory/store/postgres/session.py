"""A session of PostgreSQL and its transactions: sessions that end are replaced, and round trips are saved."""

from __future__ import annotations

import enum
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors, generators
from psycopg.pq import TransactionStatus

from speckit_memory.config.workspace.private_folders import PRIVATE, closed_problem
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding import failures
from speckit_memory.memory.store.file.guarding.failures import LostConnectionError

T = TypeVar("T")
Binding = Any
Question = tuple[str, tuple[Any, ...]]
"""A statement with its values, in a form that can be compared."""
Sending = tuple[str, list[Binding]]
"""A statement with its values that was not sent yet."""
BEGIN_PART = "SAVEPOINT part"
LOCK = "'commits'::regclass::oid::int"
"""First key of the advisory locks of writers, one of each schema; the second is the number of the workspace."""
MOST_USUAL = 8
"""Maximum number of statements that are sent along with the first one of a read transaction."""
MOST_ROWS = 256
"""Longer results are not kept for a statement that is repeated in a read transaction unless it was expected, and not
sent along with the first one of the next."""
BLOCK = 2_000
"""Rows of a whole table that are read at a time."""
KEPT_COMMITS = 1_000
"""Latest commits whose request is kept."""
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_numbers = count()
_ENDED = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""Starts of the SQLSTATEs with which a server ends a session."""
_CONFLICT = "40001"
"""The SQLSTATE with which a replica ends a read that recovery conflicts with."""


class TransactionPhase(enum.Enum):
    """How far a transaction is. A read transaction begins on the server with its first statement."""

    NONE = 0
    BEGINNING = 1
    READING = 2
    WRITING = 3


class FetchedRows(NamedTuple):
    """The result of a statement."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    changed: int


class WorkspaceSession:
    """The session of one thread in a workspace, and its transactions.

    A session that ended outside of a transaction, or before the first statement of one, is replaced without notice.
    In a read transaction, a statement that is repeated is sent once, since its snapshot does not change. Statements
    that the last two read transactions had in common are sent along with the first one of the next, those that are
    expected along with the next one, and the answer to ROLLBACK is awaited by the next statement.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], workspace: int) -> None:
        """Connects by `connect`, which is called again when the session has ended."""
        self.workspace = workspace
        self.round_trips = 0
        """How often an answer of the server was awaited."""
        self.used = time.monotonic()
        """When the last statement was sent."""
        self._connect = connect
        self._phase = TransactionPhase.NONE
        self._lost = False
        self._unread = False
        self._asked: dict[Question, tuple[list[Binding], FetchedRows]] = {}
        self._asked_before: frozenset[Question] = frozenset()
        self._ahead: dict[Question, tuple[list[Binding], FetchedRows]] = {}
        self._expected: dict[Question, list[Binding]] = {}
        self._usual: dict[Question, list[Binding]] = {}
        self._waiting: list[Sending] = []
        self._count = 0
        self._changed = 0
        self._busy_timeout_ms = 10_000
        self.session = connect()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._phase is not TransactionPhase.NONE

    @property
    def is_writing(self) -> bool:
        """Whether a write transaction is open."""
        return self._phase is TransactionPhase.WRITING

    def txn_state(self) -> int:
        """The state of the transaction, by the driver's constants."""
        if not self.in_transaction:
            return failures.NO_TRANSACTION
        return failures.WRITING if self._phase is TransactionPhase.WRITING else failures.READING

    def set_busy_timeout(self, milliseconds: int) -> None:
        """How long the next transactions wait for another writer."""
        self._busy_timeout_ms = milliseconds

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

    def release(self) -> None:
        """Closes the session of another thread's connection unless it is in use; its next statement opens another."""
        if self._phase is TransactionPhase.NONE and self.session.lock.acquire(blocking=False):
            try:
                if self.session.info.transaction_status is TransactionStatus.IDLE:
                    self.session.close()
            finally:
                self.session.lock.release()

    def begin(self, *, writes: bool) -> None:
        """Begins a transaction: one snapshot to read, or the lock of the workspace's one writer."""
        if writes:
            self._attempt(self._lock_workspace, repeatable=True)
        self._phase = TransactionPhase.WRITING if writes else TransactionPhase.BEGINNING

    def commit(self) -> None:
        """Commits. When the session is lost, another one tells whether the transaction was committed.

        Raises LostConnectionError if it was not, or if that could not be found out.
        """
        if self._phase is not TransactionPhase.WRITING:
            self.rollback()
            return
        request = secrets.randbits(63)
        number = self._count + 1
        text = (
            f"INSERT INTO commits (count, request) VALUES ({number}, {request}); "
            f"DELETE FROM commits WHERE count <= {number - KEPT_COMMITS}; COMMIT"
        )
        self._send_waiting()
        began = not self._lost
        try:
            self._attempt(lambda: self.session.execute(text), repeatable=False)
        except LostConnectionError:
            self._phase, self._lost = TransactionPhase.NONE, False
            if not (began and self._was_committed(number, request)):
                raise
        self._phase = TransactionPhase.NONE

    def rollback(self) -> None:
        """Ends the transaction without its changes. Raises LostConnectionError if its session was lost."""
        phase, self._phase = self._phase, TransactionPhase.NONE
        self._waiting = []
        asked, self._asked, self._ahead, self._expected = self._asked, {}, {}, {}
        if self._lost:
            self._lost = False
            raise LostConnectionError(writing=phase is TransactionPhase.WRITING)
        if phase is TransactionPhase.READING:
            usual = (
                (key, values)
                for key, (values, answer) in asked.items()
                if key in self._asked_before and len(answer.rows) <= MOST_ROWS
            )
            self._usual = dict(islice(usual, MOST_USUAL))
            self._asked_before = frozenset(asked)
            with suppress(psycopg.Error):  # the next statement finds that the session has ended
                self.session.pgconn.send_query(b"ROLLBACK")
                self._unread = True
        elif phase is TransactionPhase.WRITING:
            self._attempt(lambda: self.session.execute("ROLLBACK"), repeatable=True)

    def fetch(self, sql: str, values: list[Binding]) -> FetchedRows:
        """Runs a statement of PostgreSQL."""
        if self._phase in (TransactionPhase.NONE, TransactionPhase.WRITING):
            alone = self._phase is TransactionPhase.NONE and sql.startswith("SELECT")
            return self._attempt(lambda: _answer(self._sent_last(sql, values)), repeatable=alone)
        key = _question(sql, values)
        if key in self._ahead:
            self._asked[key] = self._ahead.pop(key)
        if key in self._asked:
            return self._asked[key][1]
        first = self._phase is TransactionPhase.BEGINNING
        along = (self._usual if first else {}) | self._expected
        is_expected = along.pop(key, None) is not None
        answer = self._attempt(lambda: self._fetched(key, values, along, begin=first), repeatable=first)
        self._phase, self._expected = TransactionPhase.READING, {}
        if is_expected or len(answer.rows) <= MOST_ROWS:
            self._asked[key] = values, answer
        return answer

    def expect(self, sql: str, values: list[Binding]) -> None:
        """Sends a query along with the next one that is awaited in this read transaction, since it will be asked."""
        key = _question(sql, values)
        is_reading = self._phase in (TransactionPhase.BEGINNING, TransactionPhase.READING)
        if is_reading and key not in self._asked and key not in self._ahead:
            self._expected[key] = values

    def send_later(self, sql: str, values: list[Binding]) -> None:
        """Sends a statement that cannot fail along with the next one that is awaited in this write transaction."""
        self._waiting.append((sql, values))

    def undo_part(self, sql: str) -> None:
        """Rolls back to a savepoint; one that was not sent yet remains to be sent."""
        begun = next((at for at in reversed(range(len(self._waiting))) if self._waiting[at][0] == BEGIN_PART), None)
        self._waiting = self._waiting[: 0 if begun is None else begun + 1]
        if begun is None:
            self.fetch(sql, [])

    def stream(self, sql: str, values: list[Binding]) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Runs a query in a transaction; returns its columns, and its rows, which are read in blocks as they are asked
        for."""
        if self._phase is TransactionPhase.BEGINNING:
            self._attempt(lambda: self.session.execute(_READ), repeatable=True)
            self._phase = TransactionPhase.READING

        self._send_waiting()

        def open_cursor() -> tuple[psycopg.RawServerCursor[Any], list[tuple[Any, ...]]]:
            cursor = psycopg.RawServerCursor(self.session, f"rows{next(_numbers)}")
            cursor.itersize = BLOCK
            cursor.execute(sql, values, binary=True)
            return cursor, cursor.fetchmany(BLOCK)

        cursor, first = self._attempt(open_cursor, repeatable=False)
        columns = tuple(column.name for column in cursor.description or ())
        if len(first) < BLOCK:
            cursor.close()
            return columns, iter(first)
        return columns, chain(first, self._remaining(cursor))

    def _remaining(self, cursor: psycopg.RawServerCursor[Any]) -> Iterator[tuple[Any, ...]]:
        while block := self._attempt(lambda: cursor.fetchmany(BLOCK), repeatable=False):
            yield from block
        cursor.close()

    def send_many(self, sql: str, many: list[list[Binding]]) -> None:
        """Runs a statement of PostgreSQL with each of these values."""

        def send() -> int:
            cursor = psycopg.RawCursor(self.session)
            with self.session.pipeline():
                for text, values in self._taken():
                    _sent(self.session, text, values)
                cursor.executemany(sql, many)
            return cursor.rowcount

        self._changed = max(0, self._attempt(send, repeatable=False))

    def copy_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Binding]]) -> None:
        """Inserts rows by COPY, once for a table in a write transaction.

        They pass through a temporary table, since COPY writes to no table with row-level security.

        Args:
            table: The table.
            columns: The columns that the values of each row are for.
            rows: The rows.
        """
        names = ", ".join(f'"{column}"' for column in columns)
        incoming = f'pg_temp."incoming_{table}"'
        made = f'SELECT {names} FROM "{table}" WITH NO DATA'
        self._send_waiting()

        def send() -> None:
            with self.session.cursor() as cursor:
                cursor.execute(f"CREATE TEMP TABLE IF NOT EXISTS {incoming} ON COMMIT DELETE ROWS AS {made}")
                described = cursor.execute(f"SELECT * FROM {incoming} LIMIT 0").description or ()
                with cursor.copy(f"COPY {incoming} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types([column.type_code for column in described])
                    for row in rows:
                        copy.write_row(row)
                cursor.execute(f'INSERT INTO "{table}" ({names}) SELECT * FROM {incoming}')

        self._attempt(send, repeatable=False)

    def _taken(self) -> list[Sending]:
        """The statements that wait, which are being sent now."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _send_waiting(self) -> None:
        if self._waiting:
            sql, values = self._waiting.pop()
            self._changed = self.fetch(sql, values).changed

    def _sent_last(self, sql: str, values: list[Binding]) -> psycopg.RawCursor[Any]:
        """The cursor of a statement, which is sent after those that wait for it."""
        if not self._waiting:
            return _sent(self.session, sql, values)
        with self.session.pipeline():
            for text, bound in self._taken():
                _sent(self.session, text, bound)
            return _sent(self.session, sql, values)

    def _attempt(self, work: Callable[[], T], *, repeatable: bool) -> T:
        """Awaits an answer of the server; where nothing was done in this transaction, once more on a new session."""
        if self._lost:
            raise LostConnectionError(writing=self._phase is TransactionPhase.WRITING)
        self.used = time.monotonic()
        for again in (repeatable, False):
            self.round_trips += 1
            try:
                if self._unread:
                    self._unread = False
                    self.session.wait(generators.fetch_many(self.session.pgconn))
                return work()
            except psycopg.Error as error:
                if not (_has_ended(self.session, error) or self._is_conflict(error)):
                    if isinstance(error, errors.InsufficientPrivilege) and "of_principal" in str(error):
                        raise SpeckitError.of([closed_problem(PRIVATE)]) from error
                    raise _translated(error) from error
                self.session.close()
                if not again:
                    self._lost = self.in_transaction
                    raise LostConnectionError(writing=self._phase is TransactionPhase.WRITING) from error
            self.session = self._connect()
        raise AssertionError("the second attempt returns or raises")

    def _is_conflict(self, error: psycopg.Error) -> bool:
        """Whether a replica could not keep the rows that a read transaction sees."""
        return self._phase is not TransactionPhase.WRITING and error.sqlstate == _CONFLICT

    def _fetched(
        self, key: Question, values: list[Binding], along: Mapping[Question, list[Binding]], *, begin: bool
    ) -> FetchedRows:
        """Sends a statement of a read transaction and others along with it, after its BEGIN if it is the first."""
        if not (along or begin):
            return _answer(_sent(self.session, key[0], values))
        with self.session.pipeline():
            if begin:
                self.session.execute(_READ)
            awaited = _sent(self.session, key[0], values)
            sent = [(other, bound, _sent(self.session, other[0], bound)) for other, bound in along.items()]
        self._ahead |= {other: (bound, _answer(cursor)) for other, bound, cursor in sent}
        return _answer(awaited)

    def _lock_workspace(self) -> None:
        timeout = max(1, self._busy_timeout_ms)
        try:
            cursor = self.session.execute(
                f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {timeout}; "
                f"SELECT pg_advisory_xact_lock({LOCK}, {self.workspace}); SET LOCAL lock_timeout = 0; "
                "SELECT coalesce(max(count), 0) FROM commits"
            )
            while cursor.nextset():
                pass
            (self._count,) = cursor.fetchone() or (0,)
        except psycopg.Error:
            if not self.session.closed:
                with suppress(psycopg.Error):
                    self.session.execute("ROLLBACK")
            raise

    def _was_committed(self, number: int, request: int) -> bool:
        """Whether a transaction was committed whose session was lost during COMMIT."""
        try:
            self.session = self._connect()
            self.begin(writes=True)  # waits until the transaction has ended
            try:
                sql = "SELECT (SELECT request FROM commits WHERE count = $1), (SELECT max(count) FROM commits)"
                found, last = self.fetch(sql, [number]).rows[0]
            finally:
                self.rollback()
        except (SpeckitError, failures.DriverError) as error:
            raise LostConnectionError(writing=True, unknown=True) from error
        if found is None and last - number >= KEPT_COMMITS:
            raise LostConnectionError(writing=True, unknown=True)
        return bool(found == request)


def _question(sql: str, values: list[Binding]) -> Question:
    return sql, tuple((type(value), tuple(value) if isinstance(value, list) else value) for value in values)


def _sent(session: psycopg.Connection[Any], sql: str, values: list[Binding]) -> psycopg.RawCursor[Any]:
    return psycopg.RawCursor(session).execute(sql, values, binary=True)


def _answer(cursor: psycopg.RawCursor[Any]) -> FetchedRows:
    with cursor:
        if cursor.description is None:
            return FetchedRows((), [], max(0, cursor.rowcount))
        return FetchedRows(
            tuple(column.name for column in cursor.description), cursor.fetchall(), max(0, cursor.rowcount)
        )


def _has_ended(session: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """Whether an error means that the session has ended."""
    return session.closed or (error.sqlstate or "").startswith(_ENDED)


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


def _translated(error: psycopg.Error) -> failures.DriverError:
    """The error that the product expects of a connection."""
    kind = next((made for found, made in _ERRORS if isinstance(error, found)), failures.DriverError)
    return kind(str(error))
