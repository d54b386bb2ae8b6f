"""A number that changes with every commit to a store by any thread or process (feature T25)."""

from __future__ import annotations

from threading import Lock

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.queries import value


class Commits:
    """Detects commits to a store. It uses a separate connection that never writes, because `PRAGMA data_version` counts
    only the commits of other connections. Safe for several threads.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = Lock()
        self._connection: apsw.Connection | None = None
        self._ended = False
        database.before_closing(self._end)

    def number(self) -> int:
        """A number that is unchanged exactly if nothing was committed since the last call on this object.

        Raises E027 when the store was closed, and the store's errors when it cannot be read.
        """
        with self._guard, translate_errors(self._database.path):
            if self._ended:
                raise SpeckitError("E027", f"{self._database.path} has been closed")
            if self._connection is None:
                self._connection = self._database.bare()
            # changes with commits of other connections, in this process and in others
            found: int = value(self._connection, "PRAGMA data_version")
            return found

    def _end(self) -> None:
        with self._guard:
            self._ended = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None
