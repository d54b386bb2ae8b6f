"""Reports how many documents an index run had committed when it ends early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.identity import ReplacedError

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import IndexProgress


class CommittedProgress:
    """A progress callback that remembers the number of committed documents and calls another callback."""

    def __init__(self, progress: Callable[[IndexProgress], None] | None) -> None:
        self._progress = progress
        self._written = 0

    def __call__(self, now: IndexProgress) -> None:
        """Called after each committed batch."""
        self._written = now.done
        if self._progress:
            self._progress(now)

    @contextmanager
    def reported_on_error(self) -> Iterator[None]:
        """Adds the number of committed documents to an error that ends the run, unless the store was replaced."""
        self._written = 0
        try:
            yield
        except ReplacedError:
            raise
        except SpeckitError as error:
            if not self._written:
                raise
            first, *others = error.problems
            count = f"{self._written:,} document{'s' if self._written > 1 else ''}"
            message = f"{first.message}; {count} of this run had been written before and are kept"
            raise SpeckitError.of([replace(first, message=message), *others]) from error
