"""A store in PostgreSQL: opening it by URL, its connections, and its transactions.

At a store's path lies a *store link* (`config.workspace.store_address`). Files next to a store, such as segments, lie
next to the link: segments are a cache of this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlencode

from speckit_memory.config.workspace.private_folders import private_owner
from speckit_memory.config.workspace.store_address import PRINCIPAL, address_at
from speckit_memory.errors import SpeckitError, refused
from speckit_memory.memory.store.file.connection import BUSY_TIMEOUT_MS, Database, Transaction, committing
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.identity import StoreState
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.file.guarding.store_file import UNFINISHED, unfinished_copy
from speckit_memory.memory.store.file.opening import STORE, FileKind

DEFAULT_WORKSPACE = "default"
_TIMEOUTS = {"connect_timeout": 5, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""In seconds, unless the address says otherwise: a network that is gone is noticed within half a minute."""
MOST_SESSIONS = 16
"""With more sessions in a process, the ones that were unused for longest are closed until their threads use them."""
_STATE = "SELECT (SELECT max(count) FROM commits), (SELECT coalesce(max(seq), 0) FROM changes)"
_LASTING = ("authentication", "does not exist", "pg_hba.conf", "permission denied")
"""Words of errors that waiting does not change."""
_PAUSE = 0.05
"""Seconds between two attempts to connect."""


class PostgresDatabase(Database):
    """The store of one workspace. Each thread has its own session; writers of a workspace queue on its lock."""

    shared = True

    def __init__(self, path: Path, url: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS, kind: FileKind = STORE) -> None:
        """Connects to nothing yet; callers use `open`."""
        self._set_up(path, busy_timeout_ms)
        # not `urlunsplit`, which writes postgresql:///?service=NAME with one slash
        place, _, query = url.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        self.workspace = options.pop("workspace", DEFAULT_WORKSPACE)
        if self.workspace.endswith(UNFINISHED):
            raise SpeckitError(
                "E030",
                f"the address {address_at(path)} names the workspace {self.workspace}; names that end with "
                f"{UNFINISHED} are those of copies that are not finished",
                actions=("name another workspace", *unfinished_copy("").problems[0].actions),
            )
        self.principal = options.pop(PRINCIPAL, "")
        self.partitions = options.pop("partitions", "0")
        """The number of partitions, counted where this store is the first of its database (docs/scaling.md)."""
        for name, seconds in _TIMEOUTS.items():
            options.setdefault(name, str(seconds))
        self.url = f"{place}?{urlencode(options, quote_via=quote)}"
        self._kind = kind
        self._number = 0
        self._vector = 0

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        unfinished: bool = False,
        kind: FileKind = STORE,
    ) -> Self:
        """Opens the store that the link at this path names, and creates its schema and its workspace if needed.

        Args:
            path: The store link.
            create: Whether a missing workspace is created.
            busy_timeout_ms: How long writes wait for another writer.
            unfinished: Opens the copy that is to become this store.
            kind: The store itself, or another database of the same workspace, in a schema of its own.

        Raises:
            SpeckitError: E010 (no such workspace), E020 (an unfinished copy), E030 (no number of partitions), E050 to
                E059 (the driver, the server, the role or the database cannot be used), E023 (the schema could not be
                created) and E025 (newer than this version).
        """
        from speckit_memory.memory.store.postgres import opening
        from speckit_memory.memory.store.postgres.hnsw import HnswIndex
        from speckit_memory.memory.store.postgres.schema import MOST_PARTITIONS

        database = cls(path, address_at(path), busy_timeout_ms=busy_timeout_ms, kind=kind)
        database.vector_index = HnswIndex(database.reader, database._session)
        if unfinished:
            database.workspace += UNFINISHED
        if not database.partitions.isdecimal() or int(database.partitions) > MOST_PARTITIONS:
            raise SpeckitError.of([refused("partitions", database.partitions, f"0 to {MOST_PARTITIONS}")])
        with opening.coded_errors(database.url):
            database._vector, database._number = opening.prepare(
                database.url,
                database.workspace,
                create=create,
                migrations=kind.steps,
                schema=kind.schema,
                partitions=int(database.partitions),
            )
        return database

    def is_closed(self, key: str) -> bool:
        """Whether a key, or a folder with a slash at its end, lies in the private folder of another principal."""
        return private_owner(key) not in ("", self.principal)

    def state(self) -> StoreState:
        """The present state: the last change counts as the number of commits too."""
        with translate_errors(self.path):
            connection = self.reader()
            if connection.in_transaction:
                return StoreState(0, int(value(connection, "SELECT coalesce(max(seq), 0) FROM changes")))
            return StoreState(*map(int, rows(connection, _STATE)[0]))

    def require_present(self) -> None:
        """Nothing: a workspace is not replaced as a file is, and its end is an error of the next statement."""

    @property
    def writes(self) -> int:
        """Number of write transactions that this thread has begun, to tell whether its work can be repeated."""
        return int(getattr(self._local, "writes", 0))

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

        Raises E022 when the lock is not free within the busy timeout, and LostConnectionError when the connection was
        lost, unless the transaction was committed all the same.
        """
        timeout = self._busy_timeout_ms if busy_timeout_ms is None else busy_timeout_ms
        with self._turn(timeout) as connection:
            connection.set_busy_timeout(timeout)
            connection.execute("BEGIN IMMEDIATE")
            self._local.writes = self.writes + 1
            with committing(connection, self.principal) as txn:
                yield txn

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
        """A new connection of this workspace, which the caller closes. Raises E020 and the like if there is none."""
        from speckit_memory.memory.store.postgres.connection import Connection
        from speckit_memory.memory.store.postgres.schema import derived

        return Connection(self._session, derived(self._kind.steps).tables, self._number)

    def _session(self) -> Any:
        """A new session; a server that is being restarted is awaited up to the busy timeout."""
        import psycopg

        from speckit_memory.memory.store.postgres import opening

        until = time.monotonic() + self._busy_timeout_ms / 1000
        with opening.coded_errors(self.url):
            while True:
                if self._closed:
                    raise SpeckitError("E027", f"{self.path} has been closed")
                try:
                    return opening.connect(self.url, self._vector, self._number, self.principal, self._kind.schema)
                except psycopg.OperationalError as error:
                    if time.monotonic() > until or any(word in str(error) for word in _LASTING):
                        raise
                time.sleep(_PAUSE)

    def _connect(self) -> Any:
        connection = self.bare()
        self._keep(connection)
        with self._guard:
            kept: list[Any] = [entry[1] for entry in self._connections]
            in_use = [one for one in kept if not one.session.closed]
            for idle in sorted(in_use, key=lambda one: one.used)[:-MOST_SESSIONS]:
                idle.release()
        return connection
