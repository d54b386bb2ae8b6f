"""When something was read from the store's file, and whether what a thread sees now is still of that moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import Kind

CONTENT: frozenset[Kind] = frozenset({"put", "delete"})
"""Changes of what memories say."""
EDGES: frozenset[Kind] = frozenset({"edges", "delete"})
"""Changes of how memories are connected."""


@contextmanager
def committed_read(database: Database) -> Iterator[apsw.Connection]:
    """A read of one committed state; joins a read that this thread has begun. Raises RuntimeError inside a write.

    A write would show its own changes, which nobody else may see yet and which may still be undone.
    """
    if database.reader().txn_state() == apsw.mapping_txn_state["SQLITE_TXN_WRITE"]:
        raise RuntimeError("the read model cannot be asked for a state of the store inside a transaction that writes")
    with database.snapshot_read() as connection:
        yield connection


class Moment:
    """A state of the store's file, told by its last change, as far as changes of some kinds go.

    What is read from the file on demand belongs to a state that all threads share. It may be kept only when the file is
    still as it was then.
    """

    __slots__ = ("_database", "_kinds", "_sequence", "_until")

    def __init__(self, database: Database, sequence: int, kinds: frozenset[Kind]) -> None:
        self._database = database
        self._sequence = sequence
        self._until = sequence
        self._kinds = kinds

    def lasts(self, sequence: int) -> None:
        """Up to this change nothing of these kinds has changed. The log forgets old changes, and what still holds must
        not be taken for what nobody can tell any more."""
        self._until = max(self._until, sequence)

    @contextmanager
    def read(self) -> Iterator[tuple[apsw.Connection, bool]]:
        """The connection of this thread, inside a read of one state, and whether that is this one.

        It always is inside `ReadModel.reading`. Raises RuntimeError inside a transaction that writes.
        """
        with committed_read(self._database) as connection:
            log = changes.since(connection, min(self._until, max(self._sequence, changes.latest(connection))))
            yield connection, log is not None and self._kinds.isdisjoint(kind for _, kind in log[1])
