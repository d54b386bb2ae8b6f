"""The current snapshot of a store, kept up to date with what any thread or process writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.state.background_builder import Beside
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import committed_read
from speckit_memory.memory.store.tables import changes
from speckit_memory.pipeline.process.clock import opening

MOST_CHANGES = 500
"""Beyond so many changes, it is looked whether something else is nearer to the state than the last snapshot."""
LOADS = 4
"""So often something is read beside the searches when others write all the while; then it is left for later."""


class ReadModel:
    """Hands out snapshots: each query is answered inside one `reading()`, which is of one state to its end.

    Snapshots never change. A refresh copies the outer tables of the snapshot before (of 10,000 memories, in a few
    milliseconds), shares the large arrays beneath them, applies the log of changes to the copy and publishes it by one
    assignment. So queries need no lock, cannot see half of a change, and may go on with an old snapshot as long as they
    like. Only refreshes exclude each other.
    """

    def __init__(self, database: Database, models: Models) -> None:
        """Take what turns queries into words, tokens and vectors, as it did with the stored texts."""
        self._database = database
        self._models = models
        self._beside = Beside(database)
        self._snapshot: Snapshot | None = None
        self._refreshing = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The latest committed state, and a transaction of this thread that sees the same one.

        So what the snapshot has in memory, what it reads when it is first asked, and what SQLite answers to this thread
        agree, whoever writes meanwhile. Raises RuntimeError inside a transaction of this thread that writes.
        """
        joined = self._database.reader().in_transaction
        if not joined:
            self._database.latest()  # raises when the store was replaced
        with committed_read(self._database) as connection:
            yield self._snapshot_of(connection, joined=joined)

    def current(self) -> Snapshot:
        """The latest committed state alone, for who asks what it has in memory: see `Snapshot`."""
        with self.reading() as snapshot:
            return snapshot

    def load_vectors(self) -> None:
        """Reads all vectors into memory, where the snapshots that follow find them.

        A snapshot that another thread has made meanwhile came of one without vectors, and reads them for itself.
        """
        for _ in range(LOADS):
            with self.reading() as snapshot:
                if snapshot.vectors.loaded:
                    return
                snapshot.vectors.load()

    def renew(self) -> bool:
        """Has the queries that come answered from what lies in the store's segment now, where they were not before.

        The state is read beside them; nothing changes for the ones under way, or before the first. False when others
        write all the while, so that what was read was not the latest state any more.
        """
        if self._snapshot is None:
            return True
        for _ in range(LOADS):
            with committed_read(self._database) as connection:
                renewed = Snapshot.load(self._database, connection, self._models, self._beside)
            with self._refreshing:
                if self._snapshot.sequence <= renewed.sequence:
                    self._snapshot = renewed
                    return True
        return False

    def _snapshot_of(self, connection: apsw.Connection, *, joined: bool) -> Snapshot:
        """The snapshot of the state that the connection sees; a transaction that nobody else uses may begin anew."""
        snapshot = self._snapshot
        if snapshot is not None and not snapshot.intact:
            self._leave(snapshot)
        elif snapshot is not None and snapshot.sequence == changes.latest(connection):
            return snapshot
        with opening(), self._refreshing:
            if not joined:
                # another thread may have published a later state than this transaction sees
                connection.execute("ROLLBACK; BEGIN")
            snapshot, latest = self._snapshot, changes.latest(connection)
            if snapshot is not None and snapshot.sequence > latest:
                return Snapshot.load(self._database, connection, self._models, self._beside)
            log = None if snapshot is None else changes.since(connection, snapshot.sequence)
            if snapshot is None or log is None or len(log[1]) > MOST_CHANGES:
                earlier = None if snapshot is None or log is None else (snapshot, log)
                snapshot = Snapshot.load(self._database, connection, self._models, self._beside, earlier)
            elif log[0] != snapshot.sequence:
                snapshot = snapshot.advanced(self._database, connection, *log)
            self._snapshot = snapshot
            return snapshot

    def _leave(self, snapshot: Snapshot) -> None:
        """Has the queries that come read the store anew, unless another thread has seen to that."""
        with self._refreshing:
            if self._snapshot is snapshot:
                self._snapshot = None
