"""A store in PostgreSQL: opening it by URL, its connections, and its transactions.

At a store's path lies a *store link*, a small file with the URL. What is kept next to a store, such as segments and the
evaluation database, is kept next to the link: segments are a cache of this machine.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import BUSY_TIMEOUT_MS, Database, Transaction
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.identity import StoreState
from speckit_memory.memory.store.file.guarding.queries import value

OLDEST = 160_000
"""The oldest server: 16 has IS JSON and takes subqueries without a name."""
DEFAULT_WORKSPACE = "default"
SCHEMA = "speckit"
_CREATING = 0x53504B43
"""Key of the advisory lock of the process that creates or migrates the schema."""


def link(url: str, folder: Path) -> Path:
    """The path of the store link for a URL, which is written if it is missing.

    Raises E014 for a URL with a password, and E020 when the link cannot be written.
    """
    if urlsplit(url).password:
        raise SpeckitError(
            "E014",
            "the address of the store holds a password",
            actions=("put it into the file that PGPASSFILE names, or into PGPASSWORD",),
        )
    path = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.store"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(url + "\n", encoding="utf-8")
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be written: {error.strerror}") from error
    return path


class PostgresDatabase(Database):
    """The store of one workspace. Each thread has a session of its own; writers of a workspace queue on its lock."""

    shared = True

    def __init__(self, path: Path, url: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        """Connects to nothing yet; callers use `open`."""
        self.path = path
        self.only_read = False
        self.rollback = False
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.workspace = options.pop("workspace", DEFAULT_WORKSPACE)
        self.url = urlunsplit(parts._replace(query=urlencode(options)))
        self._number = 0
        self._vector = 0
        self._busy_timeout_ms = busy_timeout_ms
        self._local = threading.local()
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._connections: list[tuple[threading.Thread, Any]] = []
        self._ending = []
        self._closed = False
        self._replaced = None
        self._commits = 0

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """Opens the store that the link at this path names, and creates its schema and its workspace if needed.

        Raises E020 (psycopg is missing, no server, no rights, an old server, no pgvector, a role that row-level
        security does not bind), E023 (the schema could not be created) and E025 (newer than this version).
        """
        from speckit_memory.memory.store.postgres import opening

        database = cls(path, path.read_text(encoding="utf-8").strip(), busy_timeout_ms=busy_timeout_ms)
        with opening.coded_errors(database.url):
            database._vector, database._number = opening.prepare(database.url, database.workspace, create=create)
        return database

    def state(self) -> StoreState:
        """The present state: the last change counts as the number of commits too."""
        with translate_errors(self.path):
            last = int(value(self.reader(), "SELECT coalesce(max(seq), 0) FROM changes"))
            if self.reader().in_transaction:
                return StoreState(0, last)
            return StoreState(int(value(self.reader(), "SELECT count FROM commits") or 0), last)

    def replaced(self) -> None:
        """Closes the connections of all threads."""
        with suppress(SpeckitError):
            self.close()

    def left_behind(self) -> tuple[Path, ...]:
        """None: nothing of an earlier store lies next to the link."""
        return ()

    @contextmanager
    def write(self, busy_timeout_ms: int | None = None) -> Iterator[Transaction]:
        """One transaction: committed when the block ends, rolled back when it raises. It cannot be nested.

        Raises E022 when the lock is not free within the busy timeout.
        """
        timeout = self._busy_timeout_ms if busy_timeout_ms is None else busy_timeout_ms
        connection = self.reader()
        if connection.in_transaction:
            raise RuntimeError("a write cannot begin inside another transaction of the same thread")
        if not self._writing.acquire(timeout=timeout / 1000):
            raise SpeckitError("E022", f"{self.path} stayed locked by another thread")
        try:
            with translate_errors(self.path):
                connection.set_busy_timeout(timeout)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield Transaction(connection)
                    connection.execute("UPDATE commits SET count = count + 1")
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self._writing.release()

    def check(self) -> list[str]:
        """The problems of the store, one sentence each; empty when it answers."""
        try:
            self.state()
        except SpeckitError as error:
            return [str(error)]
        return []

    def close(self) -> None:
        """Closes the sessions of all threads."""
        self._closed = True
        for end in self._ending:
            end()
        with self._guard:
            for _, connection in self._connections:
                connection.close()
            self._connections = []

    def bare(self) -> Any:
        """A new connection of this workspace, which the caller closes."""
        from speckit_memory.memory.store.postgres import opening

        with opening.coded_errors(self.url):
            return opening.connect(self.url, self._vector, self._number)

    def _connect(self) -> Any:
        connection = self.bare()
        with self._guard:
            for thread, abandoned in self._connections:
                if not thread.is_alive():
                    abandoned.close()
            self._connections = [entry for entry in self._connections if entry[0].is_alive()]
            self._connections.append((threading.current_thread(), connection))
        self._local.connection = connection
        return connection
