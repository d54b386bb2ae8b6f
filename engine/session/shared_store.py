"""One open store with several users, who come and go on their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from speckit_memory.engine.session.reopening import Following
from speckit_memory.errors import SpeckitError


@dataclass(slots=True)
class _Users:
    """How many shares of a store have not ended."""

    count: int = 1
    guard: Lock = field(default_factory=Lock)


class Share:
    """The use of an open store, which is closed when all of its uses have ended."""

    def __init__(self, store: Following, users: _Users | None = None) -> None:
        """The first use of a store; `another` makes further ones."""
        self._store = store
        self._users = users or _Users()
        self._ended = False

    @property
    def store(self) -> Following:
        """The store. Raises E027 after the end of this use."""
        if self._ended:
            raise self._closed()
        return self._store

    def another(self) -> Share:
        """A further use, which lasts as long as it likes. Raises E027 after the end of this one."""
        with self._users.guard:
            if self._ended:
                raise self._closed()
            self._users.count += 1
        return Share(self._store, self._users)

    def end(self) -> None:
        """Ends this use. Raises E022 when a thread is inside a query of a store that nobody else uses; that can be
        repeated."""
        with self._users.guard:
            if not self._ended:
                self._ended = True
                self._users.count -= 1
            last = not self._users.count
        if last:
            self._store.close()

    def _closed(self) -> SpeckitError:
        return SpeckitError("E027", f"this Memory of {self._store.current.database.path} has been closed")
