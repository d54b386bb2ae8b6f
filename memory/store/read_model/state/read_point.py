"""The state of the store at which something was read, and whether a thread still sees that state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import Kind
from speckit_memory.pipeline.ports import Ids

CONTENT: frozenset[Kind] = frozenset({"put", "delete"})
"""Changes of the contents of memories."""
EDGES: frozenset[Kind] = frozenset({"edges", "delete"})
"""Changes of the connections between memories."""


@contextmanager
def committed_read(database: Database, since: int | None = None) -> Iterator[Connection]:
    """A read of one committed state; joins a read that this thread has begun. Raises RuntimeError inside a write.

    A write transaction would see its own changes, which are invisible to others and may still be rolled back.
    """
    if database.is_writing():
        raise RuntimeError("the read model cannot be used inside a write transaction")
    with database.snapshot_read(since) as connection:
        yield connection


class ReadPoint:
    """A state of the store's file, identified by its last change, with respect to some kinds of changes.

    Data read from the file on demand belongs to a state that all threads share. It may be cached only if the file has
    not changed since.
    """

    __slots__ = ("_database", "_kinds", "_until", "sequence")

    def __init__(self, database: Database, sequence: int, kinds: frozenset[Kind]) -> None:
        self._database = database
        self.sequence = sequence
        """The number of the last change of the state."""
        self._until = sequence
        self._kinds = kinds

    def lasts(self, sequence: int) -> None:
        """Record that nothing of these kinds changed up to this change. The log drops old changes, after which an
        unchanged state could no longer be told from a changed one."""
        self._until = max(self._until, sequence)

    @contextmanager
    def read(self) -> Iterator[tuple[Connection, bool]]:
        """The connection of this thread inside a read of one state, and whether that is this state.

        Inside `ReadModel.reading` it always is. Raises RuntimeError inside a write transaction.
        """
        with committed_read(self._database) as connection:
            latest = changes.latest(connection)
            if self.sequence <= latest <= self._until:  # nothing of these kinds changed up to `_until`
                yield connection, True
                return
            # None if the log no longer reaches back: then nothing is known about the changes since.
            log = changes.since(connection, self._until if latest > self._until else self.sequence)
            yield connection, log is not None and self._kinds.isdisjoint(kind for _, kind in log[1])

    def outdated(self, connection: Connection, memories: Ids) -> Ids:
        """The memories that changed between this state and the one that the connection sees; all of these where that is
        not known any more."""
        log = changes.since(connection, self.sequence)
        if log is None:
            return memories
        return np.array([memory for memory, kind in log[1] if kind in self._kinds], np.int64)
