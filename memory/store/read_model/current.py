"""The current snapshot of a store, kept up to date with what any thread or process writes."""

from __future__ import annotations

import threading

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.committed import committed_read
from speckit_memory.memory.store.read_model.models import Models
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.tables import changes
from speckit_memory.pipeline.clock import opening

MOST_CHANGES = 500
"""Beyond so many changes, reading everything again is faster than applying them one by one."""


class ReadModel:
    """Hands out snapshots: each query takes `current()` once and keeps it until it has answered.

    Snapshots never change. A refresh copies the outer tables of the snapshot before (of 10,000 memories, in a few
    milliseconds), shares the large arrays beneath them, applies the log of changes to the copy and publishes it by one
    assignment. So queries need no lock, cannot see half of a change, and may go on with an old snapshot as long as they
    like. Only refreshes exclude each other.
    """

    def __init__(self, database: Database, models: Models) -> None:
        """Take what turns queries into words, tokens and vectors, as it did with the stored texts."""
        self._database = database
        self._models = models
        self._snapshot: Snapshot | None = None
        self._refreshing = threading.Lock()

    def current(self) -> Snapshot:
        """The latest committed state. Raises RuntimeError inside an open transaction of this thread."""
        snapshot = self._snapshot
        if snapshot is not None and self._is_current(snapshot):
            return snapshot
        with opening(), self._refreshing, committed_read(self._database) as connection:
            snapshot = self._snapshot
            log = None if snapshot is None else changes.since(connection, snapshot.sequence)
            if snapshot is None or log is None or len(log[1]) > MOST_CHANGES:
                snapshot = Snapshot.load(self._database, connection, self._models)
            elif log[0] != snapshot.sequence:
                snapshot = snapshot.advanced(self._database, connection, *log)
            self._snapshot = snapshot
            return snapshot

    def _is_current(self, snapshot: Snapshot) -> bool:
        connection = self._database.reader()
        if connection.in_transaction:
            return False
        return self._database.latest() == snapshot.sequence
