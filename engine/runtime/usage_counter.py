"""How often memories were of use and how well they are kept, written beside the answers (features F6 and M2)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from threading import Lock, Timer

from speckit_memory.engine.background.timers import begun
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle.reviews import USED, Review, review
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading.mentions import cited_by, linked_by
from speckit_memory.memory.store.reading.reader import used_since
from speckit_memory.memory.store.tables.graph.edge_uses import note_used
from speckit_memory.memory.store.writing.writer import Use, count_uses

LOGGER = logging.getLogger(__name__)
SECONDS = 20.0
"""Uses are written this long after the first of them, so that few writes stand for many answers."""
SERVED_SECONDS = 30 * 60.0
"""A document that points at a memory which was served so short a time ago was written with its help."""
PATIENCE_MS = 250
"""So long a write waits for others; what could not be written is tried again with the next uses."""
LAST_PATIENCE_MS = 3000
"""So long the last one waits: there are no next uses then."""


class Usage:
    """Counts the memories that reached a reader, and reviews those that were opened or cited. `note` and `written` only
    remember; a thread of its own writes a little later.

    What was not written when the process is killed is lost: a few uses more or less decide about nothing.
    """

    def __init__(self, database: Database, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._guard, self._writing = Lock(), Lock()
        self._uses: dict[int, Use] = {}
        self._opened: dict[int, Review] = {}
        self._written: dict[int, float] = {}
        self._timer: Timer | None = None

    def note(self, memories: Iterable[int], now: float, opened: Iterable[int] = ()) -> None:
        """Each of these memories was of use once, at `now` (epoch seconds); those `opened` were read in full."""
        if self._database.only_read:  # nobody could write them
            return
        self._remember({memory: Use(1, now) for memory in memories}, {memory: Review(USED, now) for memory in opened})
        self._begin()

    def written(self, documents: Iterable[int], now: float) -> None:
        """These memories were written at `now`: what they link to or cite and was served shortly before was of use."""
        with self._guard:
            self._written |= dict.fromkeys(documents, now)
        self._begin()

    def close(self) -> None:
        """Writes what was noted, and waits longer for that. It may go on being used."""
        self.write(LAST_PATIENCE_MS)

    def write(self, patience_ms: int = PATIENCE_MS) -> None:
        """Writes what was noted. When the store stays busy for so long, that waits for the next time."""
        with self._writing:
            with self._guard:
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
        """Drops what was noted: the memories with these ids are gone."""
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
    """Reviews of what the documents point at that was served shortly before."""
    if not written:
        return {}
    at, documents = max(written.values()), sorted(written)
    served = used_since(txn.connection, min(written.values()) - SERVED_SECONDS)
    pointed_at = chain(linked_by(txn.connection, documents, served), cited_by(txn.connection, documents, served))
    return {memory: Review(USED, at) for memory in pointed_at}
