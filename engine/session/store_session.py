"""One user's access to an open store and to the configuration in force: what the services of a memory share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ActiveConfiguration, ConfigurationState
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.upkeep.upkeep_thread import MaintenanceThread
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.view import StoreView

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.engine.serving.reloading import Reloading

T = TypeVar("T")


@dataclass(slots=True)
class _Users:
    """The number of sessions of a store that have not ended."""

    count: int = 1
    guard: Lock = field(default_factory=Lock)


class StoreSession:
    """A counted reference to an open store, which is closed with the last one, and a configuration of its own."""

    files: Reloading | None = None
    """Follows the files of the configuration; None if they are not followed."""

    def __init__(self, store: ReopeningStore, state: ConfigurationState, users: _Users | None = None) -> None:
        """The first reference to a store; `another` makes further ones."""
        self._store = store
        self._users = users or _Users()
        self._ended = False
        self.configuration = ActiveConfiguration(state)

    def read(self, work: Callable[[OpenStore], T]) -> T:
        """Runs an operation on the store that is at the path when the operation ends; it may be repeated.

        Raises E024 for a failure that is due to a damaged file, and any exception of `work`.
        """
        return self.store.run(work)

    def write(self, work: Callable[[OpenStore], T], *, create: bool = False, repeatable: bool = True) -> T:
        """Runs an operation that changes the store.

        Args:
            work: The operation.
            create: Create the file again if it is gone and may be created.
            repeatable: Whether the operation may be repeated if the store was replaced; false for changes by id.

        Raises:
            SpeckitError: As `read`, and E026 if the store was replaced and the operation cannot be repeated.
        """
        return self.store.run(work, writes=create, repeatable=repeatable)

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return self.read(lambda opened: reader.get_memory(opened.database.reader(), name))

    def view(self) -> Store:
        """The current state of the store, as the pipeline sees it; it stays on one state until something is written."""
        return StoreView(self.read(lambda opened: opened.read_model.current()))

    @property
    def store(self) -> ReopeningStore:
        """The store, reopened after a replacement. Raises E027 after `end`."""
        if self._ended:
            raise self._closed()
        return self._store

    @property
    def opened(self) -> OpenStore:
        """The store that was opened last; its file may have been replaced since."""
        return self.store.current

    @property
    def database(self) -> Database:
        """The store's file."""
        return self.opened.database

    @property
    def upkeep(self) -> MaintenanceThread:
        """The background work on the store, which is told of searches and changes."""
        return self.store.upkeep

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.configuration.now.settings

    @property
    def root(self) -> Path:
        """The folder of the workspace, which keys are relative to."""
        return self.settings.root

    @property
    def searcher(self) -> Searcher:
        """The pipeline in force, ready to search."""
        return self.configuration.now.searching

    def create_again(self) -> None:
        """Creates the store's file again if it was deleted. Raises as opening a store does."""
        opened = self.opened
        try:
            opened.database.latest()
        except ReplacedError as why:
            self.store.open_anew(opened, why, create=True)

    def another(self, state: ConfigurationState) -> StoreSession:
        """A further, independent session of the same store. Raises E027 after `end`."""
        with self._users.guard:
            if self._ended:
                raise self._closed()
            self._users.count += 1
        return StoreSession(self._store, state, self._users)

    def end(self) -> None:
        """Ends this session. Raises E022 if it is the last one and a thread is running a query; try again then."""
        with self._users.guard:
            if not self._ended:
                self._ended = True
                self._users.count -= 1
            last = not self._users.count
        if last:
            self._store.close()

    def _closed(self) -> SpeckitError:
        return SpeckitError("E027", f"this Memory of {self._store.current.database.path} has been closed")
