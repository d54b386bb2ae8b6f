"""How often memories were of use, counted beside the answers (feature F6)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from threading import Lock, Timer

from speckit_memory.engine.timers import begun
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.writing.writer import Use, count_uses

LOGGER = logging.getLogger(__name__)
SECONDS = 20.0
"""Uses are written this long after the first of them, so that few writes stand for many answers."""
PATIENCE_MS = 250
"""So long a write waits for others; what could not be written is tried again with the next uses."""


class Usage:
    """Counts the memories that reached a reader. `note` only remembers; a thread of its own writes a little later.

    What was not written when the process is killed is lost: a few uses more or less decide about nothing.
    """

    def __init__(self, database: Database, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._guard, self._writing = Lock(), Lock()
        self._uses: dict[int, Use] = {}
        self._timer: Timer | None = None

    def note(self, memories: Iterable[int], now: float) -> None:
        """Each of these memories was of use once, at `now` (epoch seconds)."""
        if self._database.only_read:  # nobody could write them
            return
        self._remember({memory: Use(1, now) for memory in memories})
        with self._guard:
            if self._uses and self._timer is None:
                self._timer = begun(self._seconds, self.write)

    def write(self) -> None:
        """Writes what was noted. When the store is busy, that waits for the next time."""
        with self._writing:
            with self._guard:
                uses, self._uses, timer, self._timer = self._uses, {}, self._timer, None
            if timer is not None:
                timer.cancel()
            if not uses:
                return
            try:
                with self._database.write(PATIENCE_MS) as txn:
                    count_uses(txn, uses)
            except SpeckitError as error:
                LOGGER.info("uses of %d memories are written later: %s", len(uses), error)
                self._remember(uses)

    def forget(self) -> None:
        """Drops what was noted: the memories with these ids are gone."""
        with self._guard:
            self._uses, timer, self._timer = {}, self._timer, None
        if timer is not None:
            timer.cancel()

    def _remember(self, uses: dict[int, Use]) -> None:
        with self._guard:
            for memory, use in uses.items():
                known = self._uses.get(memory, Use(0, use.last))
                self._uses[memory] = Use(known.times + use.times, max(known.last, use.last))
