"""Opening the store, and the rules of reading and writing it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.file.guarding import store_file
from speckit_memory.memory.store.file.guarding.failures import translated
from speckit_memory.memory.store.file.guarding.identity import Identity, ReplacedError
from speckit_memory.memory.store.file.opening import (
    connected,
    declare_words,
    harden,
    leave_wal,
    prepare,
    require_sqlite,
    start_of,
    vector_extension,
)
from speckit_memory.pipeline.process.clock import opening

BUSY_TIMEOUT_MS = 10_000
CACHE_KIB = 65_536
SMALL_CACHE_KIB = 8_192
LOG_BYTES = 4 << 20
"""The write-ahead log begins anew at about this size, and is cut to it when it had grown beyond."""
_PRAGMAS = (
    "PRAGMA foreign_keys = ON;"
    f"PRAGMA cache_size = -{CACHE_KIB};"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA mmap_size = 0;"  # docs/decisions/0003-no-mmap.md
    f"PRAGMA journal_size_limit = {LOG_BYTES};"
)


Connection = apsw.Connection
"""A connection of one thread; the name by which other packages speak of the driver's type."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """Proof of holding the write lock; what changes the store takes one."""

    connection: apsw.Connection

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part that is undone as a whole when it raises; the rest of the transaction may still be committed."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
            self.connection.execute("RELEASE part")
        except BaseException:
            if self.connection.in_transaction:  # a full disk has SQLite undo the whole transaction by itself
                self.connection.execute("ROLLBACK TO part; RELEASE part")
            raise

    @contextmanager
    def with_small_cache(self) -> Iterator[None]:
        """What is written meanwhile goes to the file early instead of filling 64 MB of memory first."""
        self.connection.execute(f"PRAGMA cache_size = -{SMALL_CACHE_KIB}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


class Database:
    """One SQLite file in WAL mode (feature M1), or with a rollback journal where processes share no memory.

    Every thread has a connection of its own. Reads never take the write lock; opening a current file writes nothing.
    Writers queue up: those of this object on a lock, other processes on SQLite's.
    """

    def __init__(self, path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._connections: list[tuple[threading.Thread, apsw.Connection]] = []
        """Every open connection with the thread that uses it."""
        self._identity = Identity(path)
        self.only_read = store_file.may_only_be_read(path)
        """Whether nothing could be written to the file when it was opened; `write` raises E020 while that is so."""
        self._complete = self.only_read and store_file.without_log(path)
        self.rollback = False
        """Whether the file has a rollback journal, as processes share no memory where it lies."""
        self._ending: list[Callable[[], None]] = []
        self._closed = False
        self._replaced: ReplacedError | None = None

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """The store in this file, up to date unless it may only be read; `create` allows a new one and its folder.

        Raises E010 (missing), E011 or E020 (not to be opened), E014 (a folder), E022 (busy), E023 (a migration
        failed), E024 (not a store, or damaged), E025 (newer than this version) and E026 (replaced meanwhile).
        """
        require_sqlite(apsw.sqlite_lib_version())
        with translated(path):
            store_file.require_file(path, create, start_of, writable=False)
        if create and not store_file.may_only_be_read(path):
            store_file.keep_out_of_git(path.parent)
            store_file.make_file(path)
        database = cls(path, busy_timeout_ms=busy_timeout_ms)
        try:
            with translated(path):
                database.rollback = not database.only_read and leave_wal(path, busy_timeout_ms)
                connection = database.reader()
                prepare(connection, path, only_read=database.only_read, rollback=database.rollback)
                database._identity.note_log(connection)
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

    def latest(self) -> int:
        """The number of the last change; 0 in a store that never changed. Inside a transaction, of what that sees.

        Raises `ReplacedError` (E026) when the store is not the one that was opened, in the state last seen or a later
        one. What was read until then may be of another; what is written is refused by `write` itself.
        """
        connection = self.reader()
        with translated(self.path), self._noted():
            if self._complete and not store_file.without_log(self.path):
                raise ReplacedError(self.path, "was written to by a process that may")
            if connection.in_transaction:  # its state may be earlier than what was seen last: that is no replacement
                return (self._identity.last_change(connection) or (0, None))[0]
            return self._identity.require(connection)

    def replaced(self) -> None:
        """Gives the connections of all threads up, as the store at the path is another one: see `ReplacedError`.

        A thread that is inside a query may end it; whatever it asks next raises `ReplacedError`.
        """
        self._replaced = self._replaced or ReplacedError(self.path, "was replaced")
        with suppress(SpeckitError):  # what cannot be closed now is closed when its thread lets go of it
            self.close()

    @property
    def lost(self) -> bool:
        """Whether nobody can read through this object any more: it was closed, or the store was replaced."""
        return self._closed or self._replaced is not None

    def left_behind(self) -> tuple[Path, ...]:
        """Files of the store that was opened, which lie beside another one that took its path: see `Identity`."""
        return self._identity.left_behind()

    def reader(self) -> apsw.Connection:
        """This thread's connection. Each SELECT sees the latest committed state."""
        if self._replaced:
            raise self._replaced
        if self._closed:
            raise SpeckitError("E027", f"{self.path} has been closed")
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        return connection or self._connect()

    @contextmanager
    def snapshot_read(self) -> Iterator[apsw.Connection]:
        """This thread's connection, with every SELECT inside seeing one state; joins a transaction that is open."""
        connection = self.reader()
        with translated(self.path):
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                with suppress(apsw.ConnectionClosedError):  # another thread found that the store was replaced
                    if connection.in_transaction:  # some damage has SQLite undo the whole transaction by itself
                        connection.execute("ROLLBACK")

    @contextmanager
    def write(self, busy_timeout_ms: int | None = None) -> Iterator[Transaction]:
        """One transaction: committed when the block ends, undone when it raises. It cannot be nested.

        Raises E022 when the lock is not free within the busy timeout, that of the database unless another is given,
        and E026 when another store is at the path before the block begins or after its end: see `ReplacedError`. So it
        does when the store may be written to by now, and has to be opened anew for that.
        """
        timeout = self._busy_timeout_ms if busy_timeout_ms is None else busy_timeout_ms
        if self.only_read:
            if store_file.may_only_be_read(self.path):
                raise store_file.only_read(self.path)
            with self._noted():
                raise ReplacedError(self.path, "became one that may be written to")
        connection = self.reader()
        if connection.in_transaction:
            raise RuntimeError("a write cannot begin inside another transaction of the same thread")
        if not self._writing.acquire(timeout=timeout / 1000):
            raise SpeckitError("E022", f"{self.path} stayed locked by another thread")
        try:
            with translated(self.path):
                with self._noted():
                    self._identity.require_unchanged(connection)
                connection.set_busy_timeout(timeout)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                finally:
                    connection.set_busy_timeout(self._busy_timeout_ms)
                try:
                    with self._noted():
                        self._identity.require_lineage(connection)
                    yield Transaction(connection)
                    written = self._identity.last_change(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                with self._noted():
                    self._identity.require_committed(connection, written)
        finally:
            self._writing.release()

    def check(self) -> list[str]:
        """What is wrong with the file, one sentence each; empty when it is healthy."""
        try:
            with self.snapshot_read() as connection:
                return inconsistencies(connection)
        except SpeckitError as error:
            return [str(error)]

    def before_closing(self, end: Callable[[], None]) -> None:
        """Has `close` call this first: by whom works beside the searches, and must not be inside a query then."""
        self._ending.append(end)

    def close(self) -> None:
        """Closes the connections of all threads.

        Raises E022 when another thread is inside a query; closing can be repeated when that has ended.
        """
        self._closed = True
        for end in self._ending:
            end()
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
        """Remembers that the store was replaced: from then on nobody reads or writes through this object."""
        try:
            yield
        except ReplacedError as error:
            self._replaced = error
            raise

    def bare(self) -> apsw.Connection:
        """A further connection, as SQLite makes it, for whoever asks to use and close. Raises as the driver does."""
        with self._noted():
            self._identity.require_same_file()
            # a file that is called :memory: is no store in memory, which would end with this process
            name = str(self.path) if self.path.is_absolute() else f"{os.curdir}{os.sep}{self.path}"
            connection = connected(name, only_read=self.only_read, complete=self._complete)
            self._identity.require_same_file()
        connection.set_busy_timeout(self._busy_timeout_ms)
        return connection

    def _connect(self) -> apsw.Connection:
        with opening(), translated(self.path):
            connection = self.bare()
            connection.execute(_PRAGMAS)
            if self.rollback:
                connection.pragma("synchronous", 2)  # FULL: NORMAL is safe for a log alone
            connection.enable_load_extension(True)
            connection.load_extension(vector_extension())
            connection.enable_load_extension(False)
            harden(connection)
            declare_words(connection)
        with self._guard:
            for thread, abandoned in self._connections:
                if not thread.is_alive():
                    abandoned.close()
            self._connections = [entry for entry in self._connections if entry[0].is_alive()]
            self._connections.append((threading.current_thread(), connection))
        self._local.connection = connection
        return connection
