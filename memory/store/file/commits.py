"""A number that changes with everything that is committed to a store, by whichever thread or process (feature T25)."""

from __future__ import annotations

from threading import Lock

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.failures import translated
from speckit_memory.memory.store.file.guarding.queries import value


class Commits:
    """Watches a store through a connection of its own, which never writes: SQLite tells a connection of the commits of
    all others, and not of its own. Safe to be used by several threads.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = Lock()
        self._connection: apsw.Connection | None = None
        self._ended = False
        database.before_closing(self._end)

    def number(self) -> int:
        """The same as before exactly if nothing was committed since. It means nothing to another object or process.

        Raises E027 when the store was closed, and what a store raises that cannot be read.
        """
        with self._guard, translated(self._database.path):
            if self._ended:
                raise SpeckitError("E027", f"{self._database.path} has been closed")
            if self._connection is None:
                self._connection = self._database.bare()
            found: int = value(self._connection, "PRAGMA data_version")
            return found

    def _end(self) -> None:
        with self._guard:
            self._ended = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None
