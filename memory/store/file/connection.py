"""The connections to a store: opening it, reading it and writing it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import apsw

from speckit_memory.config.workspace.private_folders import of_another
from speckit_memory.config.workspace.store_address import NO_REPLICAS, Replicas, address_at
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.file.guarding import store_file
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.identity import (
    Identity,
    ReadSource,
    ReplacedError,
    ReplicaState,
    StoreState,
)
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.opening import (
    connect,
    declare_words,
    harden,
    leave_wal,
    prepare,
    require_sqlite,
    start_of,
    vector_extension,
)
from speckit_memory.pipeline.process.clock import opening
from speckit_memory.pipeline.process.yielding import yield_now

if TYPE_CHECKING:
    from speckit_memory.pipeline.ports import Ids, Vectors

T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000
CACHE_KIB = 65_536
SMALL_CACHE_KIB = 8_192
PROCESS_BYTES = 8 << 20
"""What SQLite may take in a process. Above it, connections reuse their pages instead of taking further ones: each
thread has a connection, and pages that one read before mostly lie in the system's cache too."""
LOG_BYTES = 4 << 20
"""The write-ahead log restarts at about this size in bytes, and is truncated to it when it has grown larger."""
_PRAGMAS = (
    "PRAGMA foreign_keys = ON;"
    f"PRAGMA cache_size = -{CACHE_KIB};"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA mmap_size = 0;"  # docs/decisions/0003-no-mmap.md
    f"PRAGMA journal_size_limit = {LOG_BYTES};"
)


Connection = apsw.Connection
"""The driver's connection type, under the name that other packages use; each connection belongs to one thread."""
DriverError = apsw.Error
UNFIT_VALUE = (apsw.ConstraintError, apsw.MismatchError)
"""The driver's errors for a value that a table does not take."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """Proof that the write lock is held; every function that changes the store takes one."""

    connection: Connection
    principal: str = ""
    """The author of writes, "" for none."""
    before_commit: dict[str, apsw.Bindings] = field(default_factory=dict)
    """Statements with their parameters that run once before the transaction commits, however often they are asked
    for."""

    @contextmanager
    def part(self) -> Iterator[None]:
        """A savepoint: rolled back as a whole when its block raises; the rest of the transaction can still commit."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
            self.connection.execute("RELEASE part")
        except BaseException:
            if self.connection.in_transaction:  # on a full disk, SQLite rolls the whole transaction back by itself
                self.connection.execute("ROLLBACK TO part; RELEASE part")
            raise

    @contextmanager
    def seeing_all(self) -> Iterator[None]:
        """Shows the private rows of all principals in the block, for work on the store as a whole. No effect on a file,
        where nothing is private."""
        self.connection.execute("PRAGMA all_principals = ON")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                with suppress(apsw.Error):  # in a failed transaction, which forgets the setting as well
                    self.connection.execute("PRAGMA all_principals = OFF")

    @contextmanager
    def with_small_cache(self) -> Iterator[None]:
        """Shrinks the page cache, so that writes in the block reach the file early instead of filling 64 MB first."""
        self.connection.execute(f"PRAGMA cache_size = -{SMALL_CACHE_KIB}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


class EngineIndex(Protocol):
    """An approximate index of vectors that a store's engine keeps itself."""

    def usable(self, dimensions: int) -> bool:
        """Whether there is an index of vectors of this length."""

    def near(self, direction: Vectors, count: int) -> Ids:
        """The chunks found near a unit vector, at most `count`; none without an index."""

    def build(self, dimensions: int) -> None:
        """Builds the index of vectors of this length."""


class Database:
    """One SQLite file in WAL mode (feature M1), or with a rollback journal where processes share no memory.

    Each thread has its own connection. Reads never take the write lock; opening an up-to-date file writes nothing.
    Writers queue: threads of this object on a lock, other processes on SQLite's lock.
    """

    shared: ClassVar[bool] = False
    """Whether other machines use the store, so that it can keep nothing about the files of one of them."""
    vector_index: EngineIndex | None = None
    """None in a file: segments have indexes of its vectors."""
    has_replicas = False
    """Whether searches may read from replicas."""

    def __init__(self, path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self._set_up(path, busy_timeout_ms)
        # Before the first connection: the identity must be that of the file which SQLite is going to open.
        self._identity = Identity(path)
        self.only_read = store_file.may_only_be_read(path)
        self._complete = self.only_read and store_file.without_log(path)

    def _set_up(self, path: Path, busy_timeout_ms: int) -> None:
        """The state that a store in any engine has."""
        self.path = path
        self.principal = ""
        """The author of writes, "" for none."""
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        # `_guard` is for the list of connections; `_writing` is held for a whole write, one at a time in this
        # process.
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._connections: list[tuple[threading.Thread, Connection]] = []
        """Every open connection with the thread that uses it."""
        self.only_read = False
        """Whether the file was read-only when it was opened; `write` raises E020 while it still is."""
        self.rollback = False
        """Whether the file uses a rollback journal, because processes share no memory on its file system."""
        self._ending: list[Callable[[], None]] = []
        self._closed = False
        self._replaced: ReplacedError | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        replicas: Replicas = NO_REPLICAS,
    ) -> Self:
        """Opens the store in this file and migrates it unless it is read-only; opens the store that a store link names.

        Args:
            path: The file or the store link.
            create: Whether a missing store, and the folder of its file, may be made.
            busy_timeout_ms: How long writes wait for another writer.
            replicas: The replicas of a store in PostgreSQL that searches read from.

        Raises:
            SpeckitError: E010 (missing), E011 or E020 (cannot be opened), E014 (a folder), E022 (busy), E023 (a
                migration failed), E024 (not a store, or damaged), E025 (newer than this version) and E026 (replaced
                meanwhile).
        """
        if cls is Database and address_at(path):
            # by its name: that engine is built on this module, and its driver may be missing
            engine = import_module("speckit_memory.memory.store.postgres.database").PostgresDatabase
            return engine.open(  # type: ignore[no-any-return]
                path, create=create, busy_timeout_ms=busy_timeout_ms, replicas=replicas
            )
        require_sqlite()
        with translate_errors(path):
            store_file.require_file(path, create, start_of, writable=False)
        if create and not store_file.may_only_be_read(path):
            store_file.keep_out_of_git(path.parent)
            store_file.make_file(path)
        database = cls(path, busy_timeout_ms=busy_timeout_ms)
        try:
            with translate_errors(path):
                database.rollback = not database.only_read and leave_wal(path, busy_timeout_ms)
                connection = database.reader()
                prepare(connection, path, only_read=database.only_read, rollback=database.rollback)
                watch = database.bare()
                harden(watch)
                database._identity.begin(connection, watch)
                database._identity.require(connection)
        except BaseException:
            database.close()
            raise
        return database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def is_closed(self, key: str) -> bool:
        """Whether a key, or a folder with a slash at its end, is in the private folder of another principal: never in
        a file."""
        return self.shared and of_another(key, self.principal)

    def latest(self) -> int:
        """The number of the last change; 0 in a store without changes. Raises as `state`."""
        return self.state().last

    def state(self) -> StoreState:
        """The present state. Inside a transaction the last change is that of its snapshot, and `commits` is 0.

        Raises `ReplacedError` (E026) unless the store is the one that was opened, in the state last seen or a later
        one. Rows read before may come from the other store; `write` itself refuses to write to it.
        """
        connection = self.reader()
        with translate_errors(self.path), self._noted():
            if self._complete and not store_file.without_log(self.path):
                raise ReplacedError(self.path, "was written to by another process")
            if connection.in_transaction:  # its snapshot may be older than the state last seen: that is no replacement
                return StoreState(0, (self._identity.last_change(connection) or (0, None))[0])
            return self._identity.require(connection)

    def store_id(self) -> str:
        """The random identifier of the store."""
        return str(value(self.reader(), "SELECT store_id FROM store_identity"))

    def require_present(self) -> None:
        """Raises as `state` if the file at the path is no longer this store."""
        self.state()

    @property
    def writes(self) -> int:
        """Number of write transactions that this thread has begun, counted where a connection can be lost."""
        return 0

    def is_writing(self) -> bool:
        """Whether this thread is inside a write transaction."""
        return self.reader().txn_state() == apsw.SQLITE_TXN_WRITE

    def replaced(self) -> None:
        """Closes the connections of all threads, since the store at the path is another one: see `ReplacedError`.

        A thread inside a query can finish it; its next query raises `ReplacedError`.
        """
        self._replaced = self._replaced or ReplacedError(self.path, "was replaced")
        with suppress(SpeckitError):  # a connection in use is closed when its thread releases it
            self.close()

    @property
    def lost(self) -> bool:
        """Whether this object can no longer be read through: it was closed, or the store was replaced."""
        return self._closed or self._replaced is not None

    def left_behind(self) -> tuple[Path, ...]:
        """Files of the opened store that remain next to another store that took its path: see `Identity`."""
        return self._identity.left_behind()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has an open transaction."""
        return self.reader().in_transaction

    def read_source(self) -> ReadSource:
        """Where the open read of this thread comes from."""
        return ReadSource()

    def replica_states(self) -> tuple[ReplicaState, ...]:
        """The present states of the replicas that searches read from."""
        return ()

    def reader(self) -> Connection:
        """This thread's connection. Each SELECT sees the latest committed state."""
        if self._replaced:
            raise self._replaced
        if self._closed:
            raise SpeckitError("E027", f"{self.path} has been closed")
        connection: Connection | None = getattr(self._local, "connection", None)
        return connection or self._connect()

    @contextmanager
    def snapshot_read(self, since: int | None = None) -> Iterator[Connection]:
        """This thread's connection in a read transaction, so that all SELECTs see one snapshot; joins an open one.

        With `since`, the snapshot may be that of a replica which has this change.
        """
        with translate_errors(self.path):
            if self.in_transaction:
                yield self.reader()
                return
            connection = self._begin_read(since)
            self._local.facts = {}
            try:
                yield connection
            finally:
                self._local.facts = None
                with suppress(apsw.ConnectionClosedError):  # another thread found that the store was replaced
                    if connection.in_transaction:  # on some damage, SQLite rolls the transaction back by itself
                        connection.execute("ROLLBACK")

    def _begin_read(self, _since: int | None) -> Connection:
        connection = self.reader()
        connection.execute("BEGIN")
        return connection

    @contextmanager
    def yielding_read(self) -> Iterator[Connection]:
        """As `snapshot_read`, but yields at each row that is read (see `pipeline.process.yielding`)."""
        with self.snapshot_read() as connection, yielding_at_rows(connection):
            yield connection

    def once(self, name: str, read: Callable[[Connection], T]) -> T:
        """The result of this read, which a snapshot of this thread makes once; outside of one it is made each time."""
        connection = self.reader()
        facts: dict[str, T] | None = getattr(self._local, "facts", None)
        if facts is None:
            return read(connection)
        if name not in facts:
            facts[name] = read(connection)
        return facts[name]

    @contextmanager
    def write(self, busy_timeout_ms: int | None = None) -> Iterator[Transaction]:
        """One transaction: committed when the block ends, rolled back when it raises. It cannot be nested.

        Raises E022 when the lock is not free within the busy timeout (the database's unless another is given), and
        E026 when another store is at the path before the block begins or after its end (see `ReplacedError`), or when
        a store opened read-only has become writable and must be reopened.
        """
        timeout = self._busy_timeout_ms if busy_timeout_ms is None else busy_timeout_ms
        if self.only_read:
            if store_file.may_only_be_read(self.path):
                raise store_file.only_read(self.path)
            with self._noted():
                raise ReplacedError(self.path, "became writable")
        with self._turn(timeout) as connection:
            with self._noted():
                self._identity.require_unchanged()
            # The file was checked outside, its history is checked inside the transaction: between the two,
            # another process may commit, but after BEGIN IMMEDIATE no other writer can.
            connection.set_busy_timeout(timeout)
            try:
                connection.execute("BEGIN IMMEDIATE")
            finally:
                connection.set_busy_timeout(self._busy_timeout_ms)
            with committing(connection, self.principal) as txn:
                with self._noted():
                    self._identity.require_lineage(connection)
                yield txn
                written = self._identity.last_change(connection)
            with self._noted():
                self._identity.require_committed(written)

    @contextmanager
    def _turn(self, timeout_ms: int) -> Iterator[Connection]:
        """This thread's connection, as soon as no other thread of this process writes. Raises E022."""
        connection = self.reader()
        if connection.in_transaction:
            raise RuntimeError("a write cannot begin inside another transaction of the same thread")
        # Threads of this process queue here, since SQLite's busy handler polls and would not be fair among them.
        if not self._writing.acquire(timeout=timeout_ms / 1000):
            raise SpeckitError("E022", f"{self.path} stayed locked by another thread")
        try:
            with translate_errors(self.path):
                yield connection
        finally:
            self._writing.release()

    def check(self) -> list[str]:
        """The problems of the file, one sentence each; empty when it is healthy."""
        try:
            with self.snapshot_read() as connection:
                return inconsistencies(connection)
        except SpeckitError as error:
            return [str(error)]

    def before_closing(self, end: Callable[[], None]) -> None:
        """Registers a callback that `close` runs first, so that background threads can leave their queries."""
        self._ending.append(end)

    def close(self) -> None:
        """Closes the connections of all threads.

        Raises E022 when another thread is inside a query; call again when the query has ended.
        """
        self._closed = True
        for end in self._ending:
            end()
        self._identity.end()
        with self._guard:
            remaining = []
            for thread, connection in self._connections:
                try:
                    connection.close()
                except apsw.ThreadingViolationError:
                    remaining.append((thread, connection))
            self._connections = remaining
        if remaining:
            names = ", ".join(thread.name for thread, _ in remaining)
            raise SpeckitError("E022", f"{self.path} is still in use by {names}", actions=("close it again",))

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Remembers that the store was replaced: from then on, reads and writes through this object fail."""
        try:
            yield
        except ReplacedError as error:
            self._replaced = error
            raise

    def bare(self) -> Connection:
        """A new unconfigured connection, which the caller closes. Raises the driver's own errors."""
        with self._noted():
            self._identity.require_same_file()
            # "./" before a relative name: SQLite would take a file called :memory: for an in-memory database
            name = str(self.path) if self.path.is_absolute() else f"{os.curdir}{os.sep}{self.path}"
            connection = connect(name, only_read=self.only_read, complete=self._complete)
            self._identity.require_same_file()
        connection.set_busy_timeout(self._busy_timeout_ms)
        return connection

    def _connect(self) -> Connection:
        with opening(), translate_errors(self.path):
            connection = self.bare()
            connection.execute(_PRAGMAS)
            apsw.soft_heap_limit(PROCESS_BYTES)
            if self.rollback:
                connection.pragma("synchronous", 2)  # FULL: NORMAL is safe in WAL mode only
            connection.enable_load_extension(True)
            connection.load_extension(vector_extension())
            connection.enable_load_extension(False)
            harden(connection)
            declare_words(connection)
        self._keep(connection)
        self._local.connection = connection
        return connection

    def _keep(self, connection: Connection) -> None:
        """Has a connection of this thread closed with the thread or the store, at once if that was closed meanwhile."""
        with self._guard:
            if self._closed:
                connection.close()
                raise SpeckitError("E027", f"{self.path} has been closed")
            # Connections of threads that have ended: a thread-local value is not closed with its thread.
            for thread, abandoned in self._connections:
                if not thread.is_alive():
                    abandoned.close()
            self._connections = [entry for entry in self._connections if entry[0].is_alive()]
            self._connections.append((threading.current_thread(), connection))


@contextmanager
def committing(connection: Connection, principal: str = "") -> Iterator[Transaction]:
    """The rest of a write transaction that has begun: committed when the block ends, rolled back when it raises."""
    try:
        txn = Transaction(connection, principal)
        yield txn
        for sql, parameters in txn.before_commit.items():
            connection.execute(sql, parameters)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def yielding_at_rows(connection: Connection) -> Iterator[None]:
    """Yields at each row that the connection reads inside the block."""
    connection.row_trace = _yield_at_row
    try:
        yield
    finally:
        connection.row_trace = None


def _yield_at_row(_cursor: apsw.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
    yield_now()
    return values
