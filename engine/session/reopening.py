"""One open store after the other: what is at the path is what is served, whatever happens to the file there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.engine.upkeep.upkeep_thread import Upkeep
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import listed
from speckit_memory.memory.store.file.guarding.failures import told_by_driver
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.memory.store.file.guarding.store_file import set_aside
from speckit_memory.memory.store.missing import MissingMemoryError

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore

T = TypeVar("T")
LOGGER = logging.getLogger(__name__)
ATTEMPTS = 4
"""A store that is replaced more often during one operation is not worked on."""
NAMED = 3
"""So many signs of damage are named in an error; `doctor` names more."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """When a store was opened anew (epoch seconds), and what had become of the one before."""

    at: float
    what: str


class Following:
    """The open store, opened anew whenever the file at its path is another one or was set to another state.

    With it everything is thrown away that was derived from the earlier one. An operation that this interrupts, or that
    ended on the earlier store, is done again.
    """

    def __init__(self, opener: Callable[[bool], OpenStore], *, create: bool, measured: bool = False) -> None:
        """`opener` is told whether it may create the file, which `create` allows from the start. Beside what is
        `measured` nothing is done by itself."""
        self._opener = opener
        self._create = create
        self._lock = Lock()
        self._current = opener(create)
        self.replacements: list[Replacement] = []
        self.upkeep = Upkeep(lambda: self._current, measured=measured)

    @property
    def current(self) -> OpenStore:
        """The store that was opened last, whether or not it still is the one at the path."""
        return self._current

    def run(self, work: Callable[[OpenStore], T], *, writes: bool = False, repeatable: bool = True) -> T:
        """The result of an operation on the store that is at the path at its end.

        One that `writes` makes the file anew if it is gone and may be created. One that is not `repeatable`, such as a
        change of the memory with a certain id, is refused when the store turns out to be another one. Raises what the
        operation raises; E024 for a failure that comes of a damaged file, and E026 when the store was replaced and the
        operation cannot be done again.
        """
        replaced: ReplacedError | None = None
        for _ in range(ATTEMPTS):
            opened = self._current
            try:
                result = work(opened)
                opened.database.latest()
                return result
            except Exception as error:
                replaced = _replacement(opened, error)
                if replaced is None:
                    told = _told(opened, error)
                    if told is error:
                        raise
                    raise told from error
            self.open_anew(opened, replaced, create=writes and self._create)
            if not repeatable:
                break
        assert replaced is not None  # or the loop would not have ended
        raise replaced

    def close(self) -> None:
        """Writes what was counted and closes the store. Raises E022 when a thread is inside a query; it may be
        repeated."""
        self.upkeep.end()
        self._current.usage.close()
        self._current.recorder.close()
        self._current.database.close()

    def open_anew(self, earlier: OpenStore, why: ReplacedError, *, create: bool) -> None:
        """Opens what is at the path now, unless another thread has done that. Raises as `Database.open`."""
        with self._lock:
            if self._current is not earlier:
                return
            earlier.usage.forget()
            earlier.database.replaced()
            set_aside(earlier.database.left_behind())
            opened = self._opener(create)
            if why.in_place and (wrong := opened.database.check()):
                opened.database.close()
                raise SpeckitError(
                    "E024",
                    f"{opened.database.path} {why.what} while it was open, and is damaged now: "
                    f"{listed(wrong, NAMED, '; ')}",
                    hint="A file that is copied over an open store mixes with the changes in its write-ahead log.",
                    actions=(
                        "stop the servers, delete the file with its -wal and -shm, and put the backup in its place",
                    ),
                )
            self._current = opened
            self.replacements.append(Replacement(time.time(), why.what))
            LOGGER.info("the store was opened anew: its file %s", why.what)


def _replacement(opened: OpenStore, error: Exception) -> ReplacedError | None:
    """The replacement of the store that made an operation fail, None when it failed for another reason."""
    if isinstance(error, ReplacedError):
        return error
    try:
        opened.database.latest()
    except ReplacedError as replaced:
        return replaced
    except Exception:  # what failed here too is told by the failure of the operation
        return None
    return None


def _told(opened: OpenStore, error: Exception) -> Exception:
    """An error of the driver as ours; one that comes of what no store holds as damage of the file; and of a memory that
    was deleted, what brings it back."""
    if isinstance(error, MissingMemoryError):
        from speckit_memory.engine.session.deleted_names import deleted

        return deleted(opened.database.path, opened.database.reader(), error)
    if isinstance(error, SpeckitError):
        return error
    if told := told_by_driver(error, opened.database.path):
        return told
    wrong = opened.database.check()
    return SpeckitError("E024", f"{opened.database.path} is damaged: {listed(wrong, NAMED, '; ')}") if wrong else error
