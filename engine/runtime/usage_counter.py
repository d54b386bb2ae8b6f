"""Counts uses of memories and reviews them, in batches outside the request (features F6 and M2)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from threading import Lock, Timer

from speckit_memory.engine.background.best_effort import begun
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle.reviews import USED, Review, review
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading.mentions import cited_by, linked_by
from speckit_memory.memory.store.reading.reader import used_since
from speckit_memory.memory.store.tables.graph.edge_uses import note_used
from speckit_memory.memory.store.writing.writer import Use, count_uses

LOGGER = logging.getLogger(__name__)
SECONDS = 20.0
"""Delay of a write after the first use, so that one write covers many answers."""
SERVED_SECONDS = 30 * 60.0
"""A document that links to a memory served within this time was written with its help."""
PATIENCE_MS = 250
"""Maximum wait for other writers; pending uses are written with the next ones."""
LAST_PATIENCE_MS = 3000
"""Maximum wait of the last write."""


class Usage:
    """Counts the memories that reached a reader, and reviews those that were opened or cited.

    `note` and `written` only collect; a separate thread writes shortly afterwards. A killed process loses pending uses,
    which matter little.
    """

    def __init__(self, database: Database, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        # Order of locks: `_writing` before `_guard`. `_guard` is never held during a write, so `note` does not wait
        # for one.
        self._guard, self._writing = Lock(), Lock()
        self._uses: dict[int, Use] = {}
        self._opened: dict[int, Review] = {}
        self._written: dict[int, float] = {}
        self._timer: Timer | None = None

    def note(self, memories: Iterable[int], now: float, opened: Iterable[int] = ()) -> None:
        """Counts one use of each memory at `now` (epoch seconds); those `opened` were read in full."""
        if self._database.only_read:  # they could never be written
            return
        self._remember({memory: Use(1, now) for memory in memories}, {memory: Review(USED, now) for memory in opened})
        self._begin()

    def written(self, documents: Iterable[int], now: float) -> None:
        """These memories were written at `now`: recently served memories that they link to or cite count as used."""
        with self._guard:
            self._written |= dict.fromkeys(documents, now)
        self._begin()

    def close(self) -> None:
        """Writes pending uses, with a longer wait. The object stays usable."""
        self.write(LAST_PATIENCE_MS)

    def write(self, patience_ms: int = PATIENCE_MS) -> None:
        """Writes pending uses. If the store stays busy, they wait for the next write."""
        with self._writing:
            with self._guard:  # swapped under the lock and written without it: `note` never waits for the store
                uses, self._uses, opened, self._opened = self._uses, {}, self._opened, {}
                written, self._written, timer, self._timer = self._written, {}, self._timer, None
            if timer is not None:
                timer.cancel()
            if not (uses or opened or written):
                return
            try:
                with self._database.write(patience_ms) as txn:
                    if uses:
                        count_uses(txn, uses)
                    reviews = {**_cited(txn, written), **opened}
                    review(txn, reviews)
                    note_used(txn, reviews, max((each.at for each in reviews.values()), default=0.0))
            except SpeckitError as error:
                LOGGER.info("uses of %d memories are written later: %s", len(uses), error)
                self._remember(uses, opened)
                with self._guard:
                    self._written = written | self._written

    def forget(self) -> None:
        """Drops pending uses, as their memories are gone."""
        with self._guard:
            self._uses, self._opened, self._written, timer, self._timer = {}, {}, {}, self._timer, None
        if timer is not None:
            timer.cancel()

    def _begin(self) -> None:
        with self._guard:
            if (self._uses or self._opened or self._written) and self._timer is None:
                self._timer = begun(self._seconds, self.write)

    def _remember(self, uses: dict[int, Use], opened: dict[int, Review]) -> None:
        with self._guard:
            for memory, use in uses.items():
                known = self._uses.get(memory, Use(0, use.last))
                self._uses[memory] = Use(known.times + use.times, max(known.last, use.last))
            self._opened = opened | self._opened


def _cited(txn: Transaction, written: dict[int, float]) -> dict[int, Review]:
    """Reviews of recently served memories that the documents link to or cite."""
    if not written:
        return {}
    at, documents = max(written.values()), sorted(written)
    served = used_since(txn.connection, min(written.values()) - SERVED_SECONDS)
    pointed_at = chain(linked_by(txn.connection, documents, served), cited_by(txn.connection, documents, served))
    return {memory: Review(USED, at) for memory in pointed_at}
