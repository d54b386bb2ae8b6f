"""Follows the file at the store's path: if it is replaced or set back, the new file is opened and served.

A memory that is missing because it was deleted is reported with the time, and how to restore it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.engine.upkeep.upkeep_thread import MaintenanceThread
from speckit_memory.errors import NotFoundError, SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.failures import LostConnectionError, told_by_driver
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.memory.store.file.guarding.store_file import set_aside
from speckit_memory.memory.store.missing import MissingMemoryError

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore

T = TypeVar("T")
LOGGER = logging.getLogger(__name__)
ATTEMPTS = 4
"""An operation is given up after the store was replaced this many times during it."""
NAMED = 3
"""Maximum number of faults listed in an error; `doctor` lists more."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """The time of a reopening (epoch seconds), and what had happened to the file."""

    at: float
    what: str


class ReopeningStore:
    """The open store, reopened if the file at its path is replaced or set to another state.

    Reopening discards everything derived from the earlier store. An operation that was interrupted by a replacement, or
    ended on the earlier store, is repeated.
    """

    def __init__(self, opener: Callable[[bool], OpenStore], *, create: bool, measured: bool = False) -> None:
        """Opens the store.

        Args:
            opener: Opens the store; its argument says whether it may create the file.
            create: Whether the file may be created, now or later.
            measured: Turn automatic background work off, so that it does not disturb measurements.
        """
        self._opener = opener
        self._create = create
        # Held while a file is opened: threads that meet the same replacement open it once.
        self._lock = Lock()
        self._current = opener(create)
        self.replacements: list[Replacement] = []
        self.upkeep = MaintenanceThread(lambda: self._current, measured=measured)

    @property
    def current(self) -> OpenStore:
        """The store that was opened last; its file may have been replaced since."""
        return self._current

    def run(
        self, work: Callable[[OpenStore], T], *, writes: bool = False, repeatable: bool = True, check: bool = True
    ) -> T:
        """Runs an operation on the store that is at the path when the operation ends.

        Args:
            work: The operation.
            writes: If the file is gone and may be created, create it.
            repeatable: Whether the operation may be repeated on another store. False for changes of a memory by id.
            check: Whether to look afterwards if the store is still at the path. False for work that ends with that.

        Raises:
            Exception: Any exception of `work`; E021 if the connection to a server was lost in a write, or twice; E024
                for a failure that is due to a damaged file; E026 if the store was replaced and the operation cannot be
                repeated.
        """
        replaced: ReplacedError | None = None
        lost = False
        for _ in range(ATTEMPTS):
            opened = self._current
            writes_before = opened.database.writes
            try:
                result = work(opened)
                # raises if the file was replaced while `work` ran on the old one
                if check:
                    opened.database.require_present()
                return result
            except LostConnectionError:
                # what was only read can be read again
                if lost or opened.database.writes != writes_before:
                    raise
                lost = True
                continue
            except Exception as error:
                replaced = _replacement(opened, error)
                if replaced is None:
                    told = _translate_error(opened, error)
                    if told is error:
                        raise
                    raise told from error
            self.open_anew(opened, replaced, create=writes and self._create)
            if not repeatable:
                break
        assert replaced is not None  # or the loop would not have ended
        raise replaced

    def state(self) -> tuple[str, int]:
        """The name of the open store, and a number that changes with every commit of any process.

        Raises as `run`.
        """
        return self.run(lambda opened: (opened.name, opened.database.state().commits), check=False)

    def close(self) -> None:
        """Writes pending counts and closes the store. May be repeated. Raises E022 if a thread is running a query."""
        self.upkeep.end()
        self._current.usage.close()
        self._current.recorder.close()
        self._current.database.close()

    def open_anew(self, earlier: OpenStore, why: ReplacedError, *, create: bool) -> None:
        """Opens the file at the path, unless another thread has done so. Raises as `Database.open`."""
        with self._lock:
            # Another thread has already opened the new file.
            if self._current is not earlier:
                return
            # Counts of use belong to ids of the earlier store.
            earlier.usage.forget()
            earlier.database.replaced()
            set_aside(earlier.database.left_behind())
            opened = self._opener(create)
            if why.in_place and (wrong := opened.database.check()):
                opened.database.close()
                raise SpeckitError(
                    "E024",
                    f"{opened.database.path} {why.what} while it was open, and is damaged now: "
                    f"{list_names(wrong, NAMED, '; ')}",
                    hint="A file that is copied over an open store mixes with the changes in its write-ahead log.",
                    actions=(
                        "stop the servers, delete the file with its -wal and -shm, and put the backup in its place",
                    ),
                )
            self._current = opened
            self.replacements.append(Replacement(time.time(), why.what))
            LOGGER.info("the store was reopened: its file %s", why.what)


def _replacement(opened: OpenStore, error: Exception) -> ReplacedError | None:
    """The replacement that made an operation fail, None if it failed for another reason."""
    if isinstance(error, ReplacedError):
        return error
    try:
        # Raises if the file is another one now, which explains the failure better than the error itself.
        opened.database.latest()
    except ReplacedError as replaced:
        return replaced
    except Exception:  # the operation's own error is reported instead
        return None
    return None


def _translate_error(opened: OpenStore, error: Exception) -> Exception:
    """Translates an error: driver errors to ours, damaged data to E024, a missing memory to its deletion."""
    if isinstance(error, MissingMemoryError):
        return deletion_error(opened.database.path, opened.database.reader(), error)
    if isinstance(error, SpeckitError):
        return error
    if told := told_by_driver(error, opened.database.path):
        return told
    wrong = opened.database.check()
    return (
        SpeckitError("E024", f"{opened.database.path} is damaged: {list_names(wrong, NAMED, '; ')}") if wrong else error
    )


_HINT = "Restoring it brings back its file and its judgements and links; the last 1,000 deletions of 90 days are kept."


class DeletedMemoryError(NotFoundError):
    """E080: this memory was deleted, and can be restored."""


def deletion_error(store: Path, connection: Connection, missing: MissingMemoryError) -> SpeckitError:
    """An error that describes the deletion of a missing memory; `missing` itself if no deletion is known.

    Of several deletions of one key the latest is described.
    """
    from speckit_memory.memory.store.checkpoints import deletions
    from speckit_memory.memory.store.reading.reader import known_files

    for gone in deletions.deletions(store):
        for number, key in gone.memories.items():
            if missing.name not in (number, key):
                continue
            at = datetime.fromtimestamp(gone.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            others = len(gone.memories) - 1
            beside = f", with {others:,} more" if others else ""
            message = f"{key} (id {number}) was deleted on {at}{beside}"
            back: tuple[str, ...] = (f'memory_delete with undo="{gone.name}"', f"speckit-memory undelete {gone.name}")
            if now := known_files(connection, key).get(key):
                # restoring would be refused (E108); the new memory has taken its place
                back = (f"ask for {key}, which was added since with the id {now.id}",)
            return DeletedMemoryError("E080", message, hint=_HINT, actions=back)
    return missing
