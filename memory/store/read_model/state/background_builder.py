"""Work on the read model that goes on beside the searches and leaves them most of the time."""

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
"""So long at a time searches may wait for the interpreter, which runs one thread at a time."""
REST_SECONDS = 0.006
T = TypeVar("T")


class StoppedError(Exception):
    """The store is being closed."""


class Beside:
    """One thread at most, which works in slices and ends when the store is closed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stopped = threading.Event()
        self._reading = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None]) -> bool:
        """Begins this work unless some is being done; says whether it did."""
        with self._starting:
            if self._stopped.is_set() or self.busy:
                return False
            if self._thread is None:
                self._database.before_closing(self._stop)
            self._thread = threading.Thread(target=self._run, args=(work,), name="indexes beside", daemon=True)
            self._thread.start()
            return True

    @property
    def busy(self) -> bool:
        """Whether work is being done."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Waits until the work that has begun is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def sliced(self, items: Iterable[T]) -> Iterator[T]:
        """The same items, with a rest after every few milliseconds. Raises StoppedError once the store is closed."""
        began = perf_counter()
        for item in items:
            yield item
            if perf_counter() - began > SLICE_SECONDS:
                if self._stopped.wait(REST_SECONDS):
                    raise StoppedError
                began = perf_counter()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A read of the file, for which closing waits: keep it short. Raises StoppedError once the store is closed."""
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
        with self._reading:
            pass
