"""A store in PostgreSQL: opening it by URL, its connections, and its transactions.

At a store's path lies a *store link* (`config.workspace.store_address`). Files next to a store, such as segments, lie
next to the link: segments are a cache of this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from speckit_memory.config.workspace.store_address import NO_REPLICAS, Replicas, address_at, split_address
from speckit_memory.errors import SpeckitError, refused
from speckit_memory.memory.store.file.connection import BUSY_TIMEOUT_MS, Database, Transaction, committing
from speckit_memory.memory.store.file.guarding.failures import (
    WRITING,
    DriverError,
    LostConnectionError,
    translate_errors,
)
from speckit_memory.memory.store.file.guarding.identity import ReadSource, ReplicaState, StoreState
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.file.guarding.store_file import UNFINISHED, unfinished_copy
from speckit_memory.memory.store.file.opening import STORE, FileKind
from speckit_memory.memory.store.postgres.replicas import STANDING, ReadRouting, Replica, Standing, end

DEFAULT_WORKSPACE = "default"
MOST_SESSIONS = 16
"""With more sessions in a process, the ones that were unused for longest are closed until their threads use them."""
_STATE = "SELECT (SELECT max(count) FROM commits), (SELECT coalesce(max(seq), 0) FROM changes)"
_COUNTED = """
SELECT reltuples > 0, EXISTS (SELECT FROM memories) FROM pg_class WHERE oid = 'memories'::regclass
"""
"""Whether the memories of all workspaces were counted, and whether this one has any."""
_OWN_TABLES = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND pg_has_role(relowner, 'USAGE')
"""
_LASTING = ("authentication", "does not exist", "pg_hba.conf", "permission denied")
"""Words of errors that waiting does not change."""
_PAUSE = 0.05
"""Seconds between two attempts to connect."""


class PostgresDatabase(Database):
    """The store of one workspace. Each thread has its own session; writers of a workspace queue on its lock."""

    shared = True

    def __init__(
        self,
        path: Path,
        url: str,
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        replicas: Replicas = NO_REPLICAS,
        kind: FileKind = STORE,
    ) -> None:
        """Connects to nothing yet; callers use `open`."""
        self._set_up(path, busy_timeout_ms)
        address = split_address(url)
        self.url = address.url
        self.principal = address.principal
        self.workspace = address.workspace or DEFAULT_WORKSPACE
        if self.workspace.endswith(UNFINISHED):
            raise SpeckitError(
                "E030",
                f"the address {address_at(path)} names the workspace {self.workspace}; names that end with "
                f"{UNFINISHED} are those of copies that are not finished",
                actions=("name another workspace", *unfinished_copy("").problems[0].actions),
            )
        self.partitions = address.partitions or "0"
        """The number of partitions, counted where this store is the first of its database (docs/scaling.md)."""
        self._kind = kind
        self._routing = ReadRouting(replicas, self.workspace)
        self.has_replicas = bool(replicas.addresses)
        self._number = 0
        self._vector = 0
        self._is_counted = kind is not STORE

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        replicas: Replicas = NO_REPLICAS,
        unfinished: bool = False,
        kind: FileKind = STORE,
    ) -> Self:
        """Opens the store that the link at this path names, and creates its schema and its workspace if needed.

        While the store cannot be reached, it is opened through a replica and can be read.

        Args:
            path: The store link.
            create: Whether a missing workspace is created.
            busy_timeout_ms: How long writes wait for another writer.
            replicas: The replicas that searches read from.
            unfinished: Opens the copy that is to become this store.
            kind: The store itself, or another database of the same workspace, in a separate schema.

        Raises:
            SpeckitError: E010 (no such workspace), E020 (an unfinished copy), E030 (no number of partitions), E050 to
                E059 (the driver, the server, the role or the database cannot be used), E023 (the schema could not be
                created) and E025 (newer than this version).
        """
        from speckit_memory.memory.store.postgres.hnsw import HnswIndex
        from speckit_memory.memory.store.postgres.schema import MOST_PARTITIONS

        database = cls(path, address_at(path), busy_timeout_ms=busy_timeout_ms, replicas=replicas, kind=kind)
        database.vector_index = HnswIndex(database.reader, partial(database._session, database.url))
        if unfinished:
            database.workspace += UNFINISHED
        if not database.partitions.isdecimal() or int(database.partitions) > MOST_PARTITIONS:
            raise SpeckitError.of([refused("partitions", database.partitions, f"0 to {MOST_PARTITIONS}")])
        try:
            database._prepare(database.url, create=create)
        except SpeckitError as error:
            if error.code != "E051" or not database._prepare_from_replica():
                raise
            database._routing.lose(error)
        return database

    def _prepare(self, url: str, *, create: bool) -> None:
        from speckit_memory.memory.store.postgres import opening

        with opening.coded_errors(url):
            self._vector, self._number = opening.prepare(
                url,
                self.workspace,
                create=create,
                migrations=self._kind.steps,
                schema=self._kind.schema,
                partitions=int(self.partitions),
            )
            if self.has_replicas:
                with opening.connect(url, self._vector, self._number) as session:
                    (self._routing.store,) = session.execute("SELECT store_id FROM store_identity").fetchone()

    def _prepare_from_replica(self) -> bool:
        """Learns from a replica what a session needs. Whether it holds this store is judged when it is read from."""
        for replica in self._routing.replicas:
            with suppress(SpeckitError):
                self._prepare(replica.url, create=False)
                return True
        return False

    def store_id(self) -> str:
        """The random identifier of the store; with replicas the one that it had when it was opened, which is known
        when only they can be reached."""
        return self._routing.store or super().store_id()

    def state(self) -> StoreState:
        """The present state, of a replica if searches read from one: the last change counts as the number of commits
        too."""
        with translate_errors(self.path):
            if self.in_transaction:
                return StoreState(0, self.latest())
            if self.has_replicas:
                _, standing, _ = self._routing.choose(partial(self._ask, begin=False), 0)
                return StoreState(standing.commits, standing.last_change)
            return StoreState(*map(int, rows(self.reader(), _STATE)[0]))

    def latest(self) -> int:
        """The number of the last change of the store itself, or of the open read."""
        with translate_errors(self.path):
            return int(value(self.reader(), "SELECT coalesce(max(seq), 0) FROM changes"))

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has an open transaction."""
        return any(
            connection is not None and connection.in_transaction
            for connection in (getattr(self._local, name, None) for name in ("connection", "reading"))
        )

    def is_writing(self) -> bool:
        """Whether this thread is inside a write transaction."""
        connection = getattr(self._local, "connection", None)
        return connection is not None and connection.txn_state() == WRITING

    def reader(self) -> Any:
        """This thread's connection: that of the open read, else one to the store itself."""
        reading = getattr(self._local, "reading", None)
        return reading if reading is not None and reading.in_transaction else super().reader()

    def read_source(self) -> ReadSource:
        """Where the open read of this thread comes from."""
        source: ReadSource = getattr(self._local, "source", ReadSource())
        return source

    def replica_states(self) -> tuple[ReplicaState, ...]:
        """The present states of the replicas that searches read from."""
        return tuple(self._routing.states(partial(self._ask, begin=False)))

    def _begin_read(self, since: int | None) -> Any:
        if since is None or not self.has_replicas:
            self._local.source = ReadSource()
            return super()._begin_read(since)
        chosen = self._routing.choose(partial(self._ask, begin=True), since)
        self._local.reading, _, self._local.source = chosen
        return self._local.reading

    def _ask(self, replica: Replica | None, patient: bool, *, begin: bool) -> tuple[Any, Standing]:
        """Asks a replica or the store itself what it holds, as the first statement of a read that begins."""
        self._local.patient = patient
        try:
            connection: Any = super().reader() if replica is None else self._connection_to(replica)
            if begin:
                connection.begin(writes=False)
            try:
                return connection, Standing(*connection.fetch(STANDING, []).rows[0])
            except BaseException:
                end(connection)
                raise
        finally:
            self._local.patient = True

    def _connection_to(self, replica: Replica) -> Any:
        own: dict[str, Any] = self._local.__dict__.setdefault("replicas", {})
        if replica.url not in own:
            connection = self._new(replica.url)
            self._keep(connection)
            own[replica.url] = connection
        return own[replica.url]

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
        with self._turn(timeout) as turn:
            connection: Any = turn
            connection.set_busy_timeout(timeout)
            connection.execute("BEGIN IMMEDIATE")
            self._local.writes = self.writes + 1
            try:
                with committing(connection, self.principal) as txn:
                    yield txn
                self._routing.saw(connection.next_commit)
            except LostConnectionError:  # it may be committed
                self._routing.saw(connection.next_commit)
                raise
            self._count_rows_once(connection)

    def _count_rows_once(self, connection: Any) -> None:
        """Has a new database analysed when it has its first memories, and not a minute later by autovacuum."""
        if self._is_counted:
            return
        with suppress(DriverError, LostConnectionError):  # what was written is committed
            counted, filled = connection.fetch(_COUNTED, []).rows[0]
            if filled and not counted:
                self.count_rows()
            self._is_counted = bool(counted or filled)

    def count_rows(self) -> None:
        """Has the tables of our role analysed.

        Without statistics about its rows, the planner takes a new workspace for an empty one, or for a two-hundredth of
        each table.
        """
        connection: Any = self.reader()
        ((tables,),) = connection.fetch(_OWN_TABLES, []).rows
        if tables:
            connection.fetch(f"ANALYZE {tables}", [])

    def close(self) -> None:
        """Closes the sessions of all threads."""
        self._closed = True
        for callback in self._ending:
            callback()
        with self._guard:
            for _, connection in self._connections:
                connection.close()
            self._connections = []

    def bare(self) -> Any:
        """A new connection of this workspace, which the caller closes. Raises E020 and the like if there is none."""
        return self._new(self.url)

    def _new(self, url: str) -> Any:
        from speckit_memory.memory.store.postgres.connection import Connection
        from speckit_memory.memory.store.postgres.schema import derived

        return Connection(partial(self._session, url), derived(self._kind.steps).tables, self._number)

    def _session(self, url: str) -> Any:
        """A new session. A server that is being restarted is awaited up to the busy timeout, unless a replica can
        answer, or the store was lost a moment ago."""
        import psycopg

        from speckit_memory.memory.store.postgres import opening

        patient = getattr(self._local, "patient", True) and self._routing.loss() is None
        until = time.monotonic() + (self._busy_timeout_ms / 1000 if patient else 0)
        with opening.coded_errors(url):
            while True:
                try:
                    session = opening.connect(url, self._vector, self._number, self.principal, self._kind.schema)
                    if not self._closed:
                        return session
                    session.close()
                except psycopg.OperationalError as error:
                    if time.monotonic() > until or any(word in str(error) for word in _LASTING):
                        raise
                if self._closed:
                    raise SpeckitError("E027", f"{self.path} has been closed")
                time.sleep(_PAUSE)

    def _connect(self) -> Any:
        connection = self.bare()
        self._keep(connection)
        self._local.connection = connection
        return connection

    def _keep(self, connection: Any) -> None:
        super()._keep(connection)
        with self._guard:
            kept: list[Any] = [entry[1] for entry in self._connections]
            in_use = [one for one in kept if not one.session.closed]
            for idle in sorted(in_use, key=lambda one: one.used)[:-MOST_SESSIONS]:
                idle.release()
