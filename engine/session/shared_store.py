"""Shares one open store between several users with separate lifetimes."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.errors import SpeckitError


@dataclass(slots=True)
class _Users:
    """The number of shares of a store that have not ended."""

    count: int = 1
    guard: Lock = field(default_factory=Lock)


class StoreLease:
    """A counted reference to an open store, which is closed with the last reference."""

    def __init__(self, store: ReopeningStore, users: _Users | None = None) -> None:
        """The first reference to a store; `another` makes further ones."""
        self._store = store
        self._users = users or _Users()
        self._ended = False

    @property
    def store(self) -> ReopeningStore:
        """The store. Raises E027 after `end`."""
        if self._ended:
            raise self._closed()
        return self._store

    def another(self) -> StoreLease:
        """A further, independent reference. Raises E027 after `end`."""
        with self._users.guard:
            if self._ended:
                raise self._closed()
            self._users.count += 1
        return StoreLease(self._store, self._users)

    def end(self) -> None:
        """Ends this reference. Raises E022 if it is the last one and a thread is running a query; try again then."""
        with self._users.guard:
            if not self._ended:
                self._ended = True
                self._users.count -= 1
            last = not self._users.count
        if last:
            self._store.close()

    def _closed(self) -> SpeckitError:
        return SpeckitError("E027", f"this Memory of {self._store.current.database.path} has been closed")
