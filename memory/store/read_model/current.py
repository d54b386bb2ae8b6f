"""The current snapshot of a store, kept up to date with what any thread or process writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.state.background_builder import BackgroundBuilder
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import committed_read
from speckit_memory.memory.store.tables import changes
from speckit_memory.pipeline.process.clock import opening

MOST_CHANGES = 500
"""With more changes than this, loading from the segment is considered instead of applying the log of changes."""
LOADS = 4
"""Attempts at a background read while other connections keep writing; after that it is left for later."""


class ReadModel:
    """Hands out snapshots. Each query is answered inside one `reading()`, which sees one state from start to end.

    Snapshots never change. A refresh copies the outer tables of the previous snapshot (a few milliseconds for 10,000
    memories), shares the large arrays beneath them, applies the log of changes to the copy and publishes it by one
    assignment. Queries therefore need no lock, never see half of a change, and may keep an old snapshot as long as
    they like. Only refreshes exclude each other.
    """

    def __init__(self, database: Database, models: Models) -> None:
        """`models` turns queries into words, tokens and vectors, the same way as the stored texts."""
        self._database = database
        self._models = models
        self._beside = BackgroundBuilder(database)
        # published by one assignment: queries read it without a lock
        self._snapshot: Snapshot | None = None
        # One refresh at a time. Taken with a read transaction open, never inside a write transaction: `reading`
        # raises there.
        self._refreshing = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The latest committed state, and a transaction of this thread that sees the same state.

        The parts in memory, the parts read on demand and the answers of SQLite to this thread therefore agree even
        while others write. Raises RuntimeError inside a write transaction of this thread.
        """
        joined = self._database.reader().in_transaction
        with committed_read(self._database) as connection:
            yield self._snapshot_of(connection, joined=joined)

    def current(self) -> Snapshot:
        """The latest committed state without a transaction, for reading the parts in memory only: see `Snapshot`."""
        with self.reading() as snapshot:
            return snapshot

    def load_vectors(self) -> None:
        """Read all vectors into memory; later snapshots share them.

        A snapshot that another thread derived meanwhile from one without vectors reads them itself.
        """
        for _ in range(LOADS):
            with self.reading() as snapshot:
                if snapshot.vectors.loaded:
                    return
                snapshot.vectors.load()

    def renew(self) -> bool:
        """Switch later queries to the present segment of the store where they do not use it yet.

        The new state is read in the background; queries under way are not affected, and nothing happens before the
        first query. False when others kept writing, so that each state read was outdated when it was ready.
        """
        if self._snapshot is None:
            return True
        for _ in range(LOADS):
            with committed_read(self._database) as connection:
                renewed = Snapshot.load(self._database, connection, self._models, self._beside)
            with self._refreshing:
                # Never replace a later state that a query published meanwhile.
                if self._snapshot.sequence <= renewed.sequence:
                    self._snapshot = renewed
                    return True
        return False

    def _snapshot_of(self, connection: apsw.Connection, *, joined: bool) -> Snapshot:
        """The snapshot of the state that the connection sees; a transaction that is not `joined` may be restarted."""
        snapshot = self._snapshot
        if snapshot is not None and not snapshot.intact:
            self._leave(snapshot)
        elif snapshot is not None and snapshot.sequence == changes.latest(connection):
            return snapshot
        with opening(), self._refreshing:
            if not joined:
                # another thread may have published a later state than this transaction sees
                connection.execute("ROLLBACK; BEGIN")
            # Read under the lock: another thread may have published a snapshot since the check above.
            snapshot, latest = self._snapshot, changes.latest(connection)
            if snapshot is not None and snapshot.sequence > latest:
                return Snapshot.load(self._database, connection, self._models, self._beside)
            # Without a log, or with a long one, load from the segment or the tables; else apply the log to a copy.
            log = None if snapshot is None else changes.since(connection, snapshot.sequence)
            if snapshot is None or log is None or len(log[1]) > MOST_CHANGES:
                earlier = None if snapshot is None or log is None else (snapshot, log)
                snapshot = Snapshot.load(self._database, connection, self._models, self._beside, earlier)
            elif log[0] != snapshot.sequence:
                snapshot = snapshot.advanced(self._database, connection, *log)
            self._snapshot = snapshot
            return snapshot

    def _leave(self, snapshot: Snapshot) -> None:
        """Make later queries load the store again, unless another thread has already done so."""
        with self._refreshing:
            if self._snapshot is snapshot:
                self._snapshot = None
