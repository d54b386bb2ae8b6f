"""Builds a segment in a background thread, in short slices that yield to searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import getLogger
from time import perf_counter

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Database, DriverError, yielding_at_rows
from speckit_memory.memory.store.read_model.state.read_point import committed_read
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.pipeline.process.yielding import yielding

LOGGER = getLogger(__name__)
SLICE_SECONDS = 0.002
"""Length of one slice of work: how long a search may wait, since the interpreter runs one thread at a time."""
REST_SECONDS = 0.006
"""Pause after each slice."""


class BackgroundBuilder:
    """At most one background thread, which works in slices and ends when the store is closed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stopped = threading.Event()
        self._failed = False
        # `_reading` is held during a block of `reading`; `_stop` takes it to wait for the end of that block.
        # `_starting` guards `_thread`.
        self._reading = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began = 0.0

    def start(self, work: Callable[[], None]) -> None:
        """Start this work, unless other work is running or work has failed before."""
        with self._starting:
            if self._stopped.is_set() or self._failed or (self._thread is not None and self._thread.is_alive()):
                return
            # once, with the first thread
            if self._thread is None:
                self._database.before_closing(self._stop)
            self._thread = threading.Thread(target=self._run, args=(work,), name="read-model builder", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until the running work is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _pause(self) -> None:
        """Rests after every few milliseconds of work. Raises GivenUpError once the store is closed."""
        if perf_counter() - self._began > SLICE_SECONDS:
            if self._stopped.wait(REST_SECONDS):
                raise GivenUpError
            self._began = perf_counter()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read one committed state here; closing the store waits for the end of the block."""
        with self._reading:
            if self._stopped.is_set():
                raise GivenUpError
            with committed_read(self._database) as connection, yielding_at_rows(connection):
                yield connection

    def _run(self, work: Callable[[], None]) -> None:
        self._failed = True  # unless it ends well
        try:
            with yielding(self._pause):
                work()
            self._failed = False
        except GivenUpError:
            pass
        except (SpeckitError, DriverError, MemoryError) as error:
            LOGGER.info("the file answers on: %s", error)

    def _stop(self) -> None:
        self._stopped.set()
        # A block of `reading` that is still running holds this lock: the connection must outlive it.
        with self._reading:
            pass
