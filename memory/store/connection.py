"""Opening the store, and the rules of reading and writing it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from config.clock import opening
from config.errors import SpeckitError
from memory.store.consistency import inconsistencies
from memory.store.failures import translated
from memory.store.opening import prepare, require_sqlite, vector_extension
from memory.store.store_file import keep_out_of_git, require_file

BUSY_TIMEOUT_MS = 10_000
_PRAGMAS = (
    "PRAGMA foreign_keys = ON;"
    "PRAGMA cache_size = -65536;"  # KiB: 64 MB
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA mmap_size = 0;"  # docs/decisions/0003-no-mmap.md
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


class Database:
    """One SQLite file in WAL mode (feature M1).

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
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """The store in this file, with its schema brought up to date; `create` allows a new one and its folder.

        Raises E010 (missing), E011 or E020 (not to be read or written), E014 (a folder), E022 (busy), E023 (a migration
        failed), E024 (not a store, or damaged) and E025 (newer than this version).
        """
        require_sqlite(apsw.sqlite_lib_version())
        require_file(path, create)
        if create:
            keep_out_of_git(path.parent)
        database = cls(path, busy_timeout_ms=busy_timeout_ms)
        try:
            with translated(path):
                prepare(database.reader(), path)
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

    def reader(self) -> apsw.Connection:
        """This thread's connection. Each SELECT sees the latest committed state."""
        if self._closed:
            raise SpeckitError("E020", f"{self.path} has been closed", hint="The store is used after its end.")
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
                connection.execute("ROLLBACK")

    @contextmanager
    def write(self, busy_timeout_ms: int | None = None) -> Iterator[Transaction]:
        """One transaction: committed when the block ends, undone when it raises. It cannot be nested.

        Raises E022 when the lock is not free within the busy timeout, that of the database unless another is given.
        """
        timeout = self._busy_timeout_ms if busy_timeout_ms is None else busy_timeout_ms
        connection = self.reader()
        if connection.in_transaction:
            raise RuntimeError("a write cannot begin inside another transaction of the same thread")
        if not self._writing.acquire(timeout=timeout / 1000):
            raise SpeckitError("E022", f"{self.path} stayed locked by another thread")
        try:
            with translated(self.path):
                connection.set_busy_timeout(timeout)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                finally:
                    connection.set_busy_timeout(self._busy_timeout_ms)
                try:
                    yield Transaction(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self._writing.release()

    def check(self) -> list[str]:
        """What is wrong with the file, one sentence each; empty when it is healthy."""
        try:
            with self.snapshot_read() as connection:
                return inconsistencies(connection)
        except SpeckitError as error:
            return [str(error)]

    def close(self) -> None:
        """Closes the connections of all threads.

        Raises E022 when another thread is inside a query; closing can be repeated when that has ended.
        """
        self._closed = True
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

    def _connect(self) -> apsw.Connection:
        with opening(), translated(self.path):
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            connection.set_busy_timeout(self._busy_timeout_ms)
            connection.execute(_PRAGMAS)
            connection.enable_load_extension(True)
            connection.load_extension(vector_extension())
            connection.enable_load_extension(False)
        with self._guard:
            for thread, abandoned in self._connections:
                if not thread.is_alive():
                    abandoned.close()
            self._connections = [entry for entry in self._connections if entry[0].is_alive()]
            self._connections.append((threading.current_thread(), connection))
        self._local.connection = connection
        return connection
