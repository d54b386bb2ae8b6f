"""Maintains an open store: its segment in long-lived processes and after index runs, and background jobs."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.segment_writing import writing
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.pipeline.process.yielding import Pause, yielding

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore

LONG_LIVED_SECONDS = 60.0
"""A program that searches this long after it opened a store counts as long-lived."""
LOOK_SECONDS = 60.0
"""Interval of checks for changes by other processes."""
QUIET_SECONDS = 1.0
"""A segment is begun this long after the last search."""
MOST_WAITED_SECONDS = 0.25
"""Maximum wait for running searches between two pieces of work, so that a busy server is maintained too."""
SLICE_SECONDS = 0.002
"""Work goes on for this long after such a wait: what a search may have to wait for."""
AGAIN_SECONDS = 600.0
"""Pause after a failure: a full disk stays full for a while."""
ENDING_SECONDS = 10.0
"""Maximum wait for the current block at the end."""

NICENESS = 10
BUSY_MS = 250
"""Maximum wait of background work for other writers; then the rest is left for the next check."""

LOGGER = logging.getLogger(__name__)
OnParts = Callable[[int, int], None]
Replaying = Callable[["OpenStore", Pause], None]


class MaintenanceThread:
    """Writes a segment whenever one is due, and makes searches use it.

    Searches and saves never wait for it, and its failures do not affect them.
    """

    def __init__(self, current: Callable[[], OpenStore], *, measured: bool = False) -> None:
        """Starts no thread yet.

        Args:
            current: Returns the open store, another one after a replacement.
            measured: Start no thread automatically, so that measurements are not disturbed.
        """
        self._current = current
        self._measured = measured
        self._opened_at = perf_counter()
        # Guards `_thread`, `_woken`, `_ended`, `_jobs` and `_replay`; never held while a block is written.
        self._guard = threading.Condition()
        self._thread: threading.Thread | None = None
        self._woken = False
        self._ended = False
        self._jobs = False
        self._replay: Replaying | None = None
        self._in_use: tuple[OpenStore, str] | None = None
        self._not_before = 0.0
        self._resumed = 0.0
        self._failure = ""

    @property
    def running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, *, jobs: bool = False, replay: Replaying | None = None) -> None:
        """Starts a low-priority thread that maintains the segment until `end`.

        It also runs background `jobs` once any call asks for it, and calls `replay` in idle moments.
        """
        with self._guard:
            self._jobs = self._jobs or jobs
            self._replay = self._replay or replay
            if self._ended or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._watch, name="upkeep", daemon=True)
            with harmless("no thread keeps the segment of the store"):
                self._thread.start()

    def asked(self) -> None:
        """A search has begun. Starts the thread in a long-lived process."""
        # Read without the guard: `begin` checks again under it.
        if self._thread is None and not self._measured and perf_counter() - self._opened_at > LONG_LIVED_SECONDS:
            self.begin()

    def saved(self) -> None:
        """Something was written. Wakes the thread, if there is one."""
        with self._guard:
            self._woken = True
            self._guard.notify_all()

    def indexed(self, progress: OnParts = lambda _done, _total: None) -> tuple[Problem, ...]:
        """An index run has ended: writes the segment now if it is due, or leaves it to the thread if there is one.

        Returns failures for the run's report. `progress` gets the numbers of written and of all parts.
        """
        if self.running:
            self.saved()
            return ()
        try:
            write(self._current(), progress=progress)
        except SpeckitError as error:
            return error.problems
        return ()

    def forgotten(self) -> None:
        """Memories were deleted: removes their data from the segment too, however few they are."""
        with harmless("the segment of the store could not be written without what was forgotten"):
            opened = self._current()
            SegmentStore(opened.database).forget()
            if self.running:
                self.saved()
            else:
                write(opened)

    def end(self) -> None:
        """Ends the thread after the block it is writing."""
        with self._guard:
            self._ended = True
            self._guard.notify_all()
        # A pause between blocks waits on this condition, not on `_guard`.
        with SERVING.changed:
            SERVING.changed.notify_all()
        # A thread cannot join itself: `end` may be called from the thread that it ends.
        if self._thread is not None and self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join(ENDING_SECONDS)

    def _watch(self) -> None:
        if sys.platform == "linux":  # elsewhere priority is a property of the whole process
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while self._quiet():
            with harmless("the segment of the store could not be looked after"):
                self._look_once()
            with self._guard:
                self._guard.wait_for(lambda: self._woken or self._ended, LOOK_SECONDS)
                self._woken = False

    def _quiet(self) -> bool:
        """Waits for an idle moment; False at the end."""
        while not self._ended:
            left = QUIET_SECONDS - SERVING.quiet_for()
            if left <= 0:
                return True
            with self._guard:
                self._guard.wait_for(lambda: self._ended, left)
        return False

    def _look_once(self) -> None:
        """As `_look`, unless that failed recently; a failure is logged once."""
        if perf_counter() < self._not_before:
            return
        try:
            with yielding(self._pause):
                self._look()
                self._work()
            if self._replay is not None and not self._current().database.only_read:
                try:
                    self._replay(self._current(), self._idle)
                except SpeckitError as error:
                    LOGGER.info("kept queries are replayed later: %s", error)
            self._failure = ""
        except GivenUpError:  # at the end
            return
        except SpeckitError as error:
            self._not_before = perf_counter() + AGAIN_SECONDS
            if str(error) != self._failure:
                self._failure = str(error)
                LOGGER.warning("the upkeep of the store waits: %s", error)

    def _work(self) -> None:
        """Runs due background jobs, between searches."""
        if not self._jobs or self._current().database.only_read:
            return
        from speckit_memory.engine.upkeep import maintenance  # searches do not need it
        from speckit_memory.engine.upkeep.maintenance_jobs import jobs_for

        try:
            opened = self._current()
            every = jobs_for(opened)
            maintenance.run_due(opened.database, every, patience_ms=BUSY_MS)
        except SpeckitError as error:
            if error.code != "E022":
                raise

    def _look(self) -> None:
        """Writes a segment if one is due, and switches to a new one from any process."""
        opened = self._current()
        if not opened.database.only_read:
            write(opened)
        now = SegmentStore(opened.database).status(patient=True)
        if now.segment is None or (opened, now.segment.digest) == self._in_use:
            return
        opened.renew()
        self._in_use = opened, now.segment.digest

    def _idle(self) -> None:
        """Called between two replays: waits for an idle moment. Raises GivenUpError at the end."""
        if not self._quiet():
            raise GivenUpError

    def _pause(self) -> None:
        """Called between two pieces of work: gives way to searches. Raises GivenUpError at the end."""
        if SERVING.closed and perf_counter() - self._resumed >= SLICE_SECONDS:
            with SERVING.changed:
                SERVING.changed.wait_for(lambda: self._ended or not SERVING.closed, MOST_WAITED_SECONDS)
            self._resumed = perf_counter()
        if self._ended:
            raise GivenUpError


def write(
    opened: OpenStore,
    *,
    progress: OnParts = lambda _done, _total: None,
    only_if_due: bool = True,
) -> None:
    """Writes the segment of a store, and builds the index of vectors that its engine keeps, if it is due.

    Args:
        opened: The store.
        progress: Called with the numbers of written and of all parts.
        only_if_due: Do nothing unless a new segment is due.

    Raises:
        SpeckitError: E029, and E054 for rights that an index needs.
    """
    from speckit_memory.memory.store.segment_writing import building  # searches do not need it

    build = partial(building.build, vector_index=opened.vector_index, progress=progress)
    writing.write(opened.database, build, only_if_due=only_if_due)
    index, connection = opened.database.vector_index, opened.database.reader()
    if index is None or opened.vector_index.least is None or index.usable(size := vectors.dimensions(connection)):
        return
    if opened.vector_index.wanted(vectors.count(connection)):
        index.build(size)
