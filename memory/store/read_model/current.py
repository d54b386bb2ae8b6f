"""The current snapshot of a store, kept up to date with what any thread or process writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.read_model.snapshot import BuildSegment, Snapshot
from speckit_memory.memory.store.read_model.state.background_builder import BackgroundBuilder
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.state.read_point import committed_read
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.words import surface
from speckit_memory.pipeline.process.clock import opening
from speckit_memory.pipeline.process.yielding import yielding

MOST_CHANGES = 500
"""With more changes than this, loading from the segment is considered instead of applying the log of changes."""
MOST_BYTES = 2 << 30
"""Size of the largest store for which a segment is built in memory, of half that size."""
MOST_WORDS = 3
"""Words of a query that are looked for as typed, by default."""


class ReadModel:
    """Hands out snapshots. Each query is answered inside one `reading()`, which sees one state from start to end.

    Snapshots never change. A refresh copies the outer tables of the previous snapshot (a few milliseconds for 10,000
    memories), shares the large arrays beneath them, applies the log of changes to the copy and publishes it by one
    assignment. Queries therefore need no lock, never see half of a change, and may keep an old snapshot as long as
    they like. Only refreshes exclude each other.

    While no segment can be used, the file answers. A process that asks a second time builds a segment in memory, in
    the background.
    """

    def __init__(self, database: Database, models: Models, build: BuildSegment) -> None:
        """Read nothing yet.

        Args:
            database: The store's database.
            models: Turns queries into words, tokens and vectors, the same way as the stored texts.
            build: Builds a segment in memory.
        """
        self._database = database
        self._models = models
        self._build = build
        self._builder = BackgroundBuilder(database)
        # A lost update between threads only begins a segment one query later.
        self._answers_of_file = 0
        # published by one assignment: queries read it without a lock
        self._snapshot: Snapshot | None = None
        # One refresh at a time. Taken with a read transaction open, never inside a write transaction: `reading`
        # raises there.
        self._refreshing = threading.Lock()

    @contextmanager
    def reading(self, *, lagging: bool = False, text: str = "") -> Iterator[Snapshot]:
        """The latest committed state, and a transaction of this thread that sees the same state.

        With `lagging`, it may be a state that a replica has, but none before one that this object has handed out. A
        short `text` is that of a query, whose words a server sends along with its first answer.

        The parts in memory, the parts read on demand and the answers of SQLite to this thread therefore agree even
        while others write. Raises RuntimeError inside a write transaction of this thread.
        """
        with self._reading(self._shown() if lagging else None, text) as snapshot:
            if snapshot.from_file:
                self._answers_of_file += 1
                if self._answers_of_file > 1:
                    self._builder.start(self._build_in_memory)
            yield snapshot

    def current(self) -> Snapshot:
        """The latest committed state without a transaction, for reading the parts in memory only: see `Snapshot`."""
        with self._reading() as snapshot:
            return snapshot

    def load(self) -> None:
        """Build a segment in memory if there is none; for processes that can afford the wait."""
        if self.current().from_file:
            self._builder.start(self._build_in_memory)
            self._builder.wait()

    def renew(self) -> None:
        """Switch later queries to the present segment of the store; queries under way are not affected, and nothing
        happens before the first query."""
        if self._snapshot is None:
            return
        with committed_read(self._database) as connection:
            renewed = Snapshot.load(self._database, connection, self._models, self._build)
        with self._refreshing:
            # if it is outdated by now, the next query applies the changes since
            self._snapshot = renewed

    @contextmanager
    def _reading(self, since: int | None = None, text: str = "") -> Iterator[Snapshot]:
        joined = self._database.in_transaction
        with committed_read(self._database, since) as connection:
            if self._database.shared and len(words := text.split()) <= MOST_WORDS:
                surface.prefetch(connection, [word for word in words if len(self._models.analyse(word)) == 1])
            yield self._snapshot_of(connection, joined=joined)

    def _shown(self) -> int:
        """The change that a replica must have: the last one of the snapshot, or of the segment that will begin one."""
        if (snapshot := self._snapshot) is not None:
            return snapshot.sequence
        trusted = SegmentStore(self._database).trusted() if self._database.shared else None
        return trusted.sequence if trusted else 0

    def _build_in_memory(self) -> None:
        with self._builder.reading() as connection:
            pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            if value(connection, pages) > MOST_BYTES:
                raise MemoryError(f"the store has more than {MOST_BYTES:,} bytes")
            segment = self._build(connection)
        built = Snapshot.of_segment(segment, self._database, self._models)
        with self._refreshing:
            # The file of another writer may have become usable meanwhile.
            if self._snapshot is None or self._snapshot.from_file:
                self._snapshot = built

    def _snapshot_of(self, connection: Connection, *, joined: bool) -> Snapshot:
        """The snapshot of the state that the connection sees; a transaction that is not `joined` may be restarted."""
        snapshot = self._snapshot
        if snapshot is not None and not snapshot.intact:
            self._leave(snapshot)
        elif snapshot is not None and snapshot.sequence == changes.latest(connection):
            return snapshot
        # Searches wait for this lock: background work that refreshes must not give way to them meanwhile.
        with opening(), self._refreshing, yielding(None):
            if not joined:
                # another thread may have published a later state than this transaction sees
                connection.execute("ROLLBACK; BEGIN")
            # Read under the lock: another thread may have published a snapshot since the check above.
            snapshot, latest = self._snapshot, changes.latest(connection)
            if snapshot is not None and snapshot.sequence > latest:
                return Snapshot.load(self._database, connection, self._models, self._build)
            # Without a log, or with a long one, load from the segment or the file; else apply the log to a copy.
            log = None if snapshot is None else changes.since(connection, snapshot.sequence)
            if snapshot is None or log is None or len(log[1]) > MOST_CHANGES or not snapshot.can_follow(log):
                earlier = None if snapshot is None or log is None else (snapshot, log)
                snapshot = Snapshot.load(self._database, connection, self._models, self._build, earlier)
            elif log[0] != snapshot.sequence:
                snapshot = snapshot.advanced(self._database, connection, *log)
            self._snapshot = snapshot
            return snapshot

    def _leave(self, snapshot: Snapshot) -> None:
        """Make later queries load the store again, unless another thread has already done so."""
        with self._refreshing:
            if self._snapshot is snapshot:
                self._snapshot = None
