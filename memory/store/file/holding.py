"""An open read transaction that one thread has let go of, so that another one sees exactly what the first one saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock

import apsw


class Held:
    """A state of the store, held by a connection that is in no thread's hands until one adopts it.

    Nothing that is written meanwhile is seen, and the write-ahead log keeps what this state needs, so hold it briefly.
    Several may hold it; it is let go when the last of them ends, or the first abandons it.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        adopt: Callable[[apsw.Connection | None], apsw.Connection | None],
        give_back: Callable[[apsw.Connection, bool], None],
        give_up: Callable[[apsw.Connection], None],
    ) -> None:
        """`adopt` makes a connection that of the calling thread and returns the one it had. `give_back` takes one that
        can be used again, and whether there is time to take up the log; `give_up` one that a thread may still use."""
        self._connection = connection
        self._adopt = adopt
        self._give_back = give_back
        self._give_up = give_up
        self._ended = False
        self._holders = 1
        self._guard = Lock()

    @property
    def ended(self) -> bool:
        """Whether the state was let go."""
        return self._ended

    def share(self) -> bool:
        """Holds the state once more, unless it was let go."""
        with self._guard:
            self._holders += not self._ended
            return not self._ended

    @contextmanager
    def adopted(self) -> Iterator[None]:
        """Whatever this thread reads inside the block is of the state that is held. It must not write."""
        before = self._adopt(self._connection)
        try:
            yield
        finally:
            self._adopt(before)

    def end(self, *, take_up_log: bool = False) -> None:
        """Ends one hold. When it was the last, no thread may be inside `adopted`.

        With `take_up_log` a log that has grown long meanwhile is written into the file, for which nobody should wait.
        """
        with self._guard:
            self._holders -= 1
            if self._holders > 0:
                return
        if self._ends():
            self._give_back(self._connection, take_up_log)

    def abandon(self) -> None:
        """Lets the state go although a thread is inside `adopted`.

        A query that it is inside of raises, and what it reads after that is of the latest state.
        """
        if self._ends():
            with suppress(apsw.Error):
                self._connection.interrupt()
            self._give_up(self._connection)

    def _ends(self) -> bool:
        with self._guard:
            ended, self._ended = self._ended, True
        return not ended


def taken_up(connection: apsw.Connection) -> None:
    """Writes into the file what of the log nobody needs who holds an earlier state."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
