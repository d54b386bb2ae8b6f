"""Builds read-model structures in a background thread, in short slices that yield to searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging import getLogger
from time import perf_counter
from typing import TypeVar

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database

LOGGER = getLogger(__name__)
SLICE_SECONDS = 0.002
"""Length of one slice of work: how long a search may wait, since the interpreter runs one thread at a time."""
REST_SECONDS = 0.006
"""Pause after each slice."""
T = TypeVar("T")


class StoppedError(Exception):
    """The store is being closed."""


class BackgroundBuilder:
    """At most one background thread, which works in slices and ends when the store is closed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stopped = threading.Event()
        # `_reading` is held during a block of `reading`; `_stop` takes it to wait for the end of that block.
        # `_starting` guards `_thread`.
        self._reading = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None]) -> bool:
        """Start this work unless other work is running; True when it was started."""
        with self._starting:
            if self._stopped.is_set() or self.busy:
                return False
            # once, with the first thread
            if self._thread is None:
                self._database.before_closing(self._stop)
            self._thread = threading.Thread(target=self._run, args=(work,), name="read-model builder", daemon=True)
            self._thread.start()
            return True

    @property
    def busy(self) -> bool:
        """Whether work is running."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the running work is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def sliced(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the same items, resting after every few milliseconds. Raises StoppedError once the store is closed."""
        began = perf_counter()
        for item in items:
            yield item
            if perf_counter() - began > SLICE_SECONDS:
                if self._stopped.wait(REST_SECONDS):
                    raise StoppedError
                began = perf_counter()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read the file here; closing the store waits for the end of the block. StoppedError once it is closed."""
        with self._reading:
            if self._stopped.is_set():
                raise StoppedError
            yield

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except StoppedError:
            pass
        except (SpeckitError, apsw.Error) as error:
            LOGGER.info("the indexes stay in the file: %s", error)

    def _stop(self) -> None:
        self._stopped.set()
        # A block of `reading` that is still running holds this lock: the connection must outlive it.
        with self._reading:
            pass
