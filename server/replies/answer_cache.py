"""A cache of answers, valid while nothing they depend on has changed (feature T25)."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.server.replies.envelope import BudgetedReply

SECONDS = 60.0
"""How long an answer stays valid at most: memories age with the clock, without any write to the store."""
SLEWED_SECONDS = 1.0
"""How far wall clock and monotonic clock may drift apart between two calls without dropping the cache: clocks are
adjusted a little all the time. A larger jump means that the machine slept, which monotonic clocks do not count, or that
the date was set; the ages that answers give are wrong then."""
MOST_ENTRIES = 1_000
MOST_CHARACTERS = 1_000_000
"""Total length of all answers, text and document: about 5 MB of memory, or 100 searches of usual length."""


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Counts calls of cacheable tools since the server started.

    `hits` were answered from the cache, `misses` were not in it, `passed` must not be cached: calls of a session,
    explained or degraded answers, calls with `bypassCache`, and all calls while shadow pipelines run. `changed` counts
    how often a change of state emptied the cache, `evicted` the answers dropped for age or size.
    """

    hits: int
    misses: int
    passed: int
    changed: int
    evicted: int
    entries: int
    characters: int

    def as_json(self) -> dict[str, int]:
        """The figures as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class _Entry:
    made_at: float
    answer: BudgetedReply
    characters: int


class AnswerCache:
    """Caches the answers of one state: a commit by any process or a change of pipeline drops them all.

    Thread-safe.
    """

    def __init__(
        self,
        standing: Callable[[], Hashable | None],
        seconds: float = SECONDS,
        *,
        most_entries: int = MOST_ENTRIES,
        most_characters: int = MOST_CHARACTERS,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        """`standing` returns the state that answers depend on, apart from their arguments, None when none may be
        cached; a state that was left never returns. It raises SpeckitError when there is no state to read. Answers
        expire after `seconds`; 0 caches none. `clock` is monotonic, `calendar` is the wall clock by which memories age,
        both in seconds."""
        self._standing = standing
        self._seconds = seconds
        self._most_entries = most_entries
        self._most_characters = most_characters
        self._clock = clock
        self._calendar = calendar
        # wall clock minus monotonic clock, in seconds
        self._ahead = calendar() - clock()
        self._dates = 0
        # guards entries and counts; never held while an answer is made or the state of the store is read
        self._guard = Lock()
        self._of: Hashable | None = None
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._characters = 0
        self._hits = self._misses = self._passed = self._changed = self._evicted = 0

    def answered(
        self, tool: str, values: Mapping[str, Any], make: Callable[[], BudgetedReply]
    ) -> tuple[BudgetedReply, bool]:
        """Returns the answer of a tool to these parameter values, and whether it came from the cache.

        The state is read before the answer is made: one that changes meanwhile is another at the next call.
        """
        before = self._now()
        if before is None:
            return self.passing(make)
        # sort_keys: clients send the same arguments in any order
        key = f"{tool} {json.dumps(values, sort_keys=True)}"
        with self._guard:
            self._turn_to(before)
            found = self._entries.get(key)
            if found is not None:
                self._hits += 1
                return found.answer, True
        # outside the lock, so that slow answers do not block hits; two threads may make the same answer
        made = make()
        if made.again is None:
            with self._guard:
                self._passed += 1
            return made, False
        with self._guard:
            self._misses += 1
            # another call may have found another state meanwhile
            if self._of == before:
                self._keep(key, made)
        return made, False

    def passing(self, make: Callable[[], BudgetedReply]) -> tuple[BudgetedReply, bool]:
        """Makes an answer without reading or filling the cache; it counts as `passed`."""
        made = make()
        with self._guard:
            self._passed += 1
        return made, False

    def clear(self) -> None:
        """Drops all answers to free their memory."""
        with self._guard:
            self._turn_to(None)

    def figures(self) -> CacheFigures:
        """The counts so far."""
        with self._guard:
            return CacheFigures(
                self._hits,
                self._misses,
                self._passed,
                self._changed,
                self._evicted,
                len(self._entries),
                self._characters,
            )

    def _now(self) -> Hashable | None:
        """The state that answers depend on now, including the date; None when none may be cached."""
        if not self._seconds:
            return None
        try:
            standing = self._standing()
        except SpeckitError:
            return None  # the call itself reports the error
        return None if standing is None else (standing, self._date())

    def _date(self) -> int:
        """A number that changes when the wall clock jumps."""
        with self._guard:
            ahead = self._calendar() - self._clock()
            self._dates += abs(ahead - self._ahead) > SLEWED_SECONDS
            self._ahead = ahead
            return self._dates

    def _turn_to(self, standing: Hashable | None) -> None:
        """Drops the answers of another state, and expired ones."""
        if standing != self._of:
            self._changed += bool(self._entries)
            self._entries.clear()
            self._characters = 0
            self._of = standing
        until = self._clock() - self._seconds
        # entries are in order of insertion: the first one is the oldest
        while self._entries and next(iter(self._entries.values())).made_at <= until:
            self._drop_oldest()

    def _keep(self, key: str, answer: BudgetedReply) -> None:
        size = len(key) + answer.characters()
        if size > self._most_characters or key in self._entries:  # another thread was faster
            return
        self._entries[key] = _Entry(self._clock(), replace(answer, after=None), size)
        self._characters += size
        # the oldest answer goes first, used or not: all expire within a minute anyway
        while len(self._entries) > self._most_entries or self._characters > self._most_characters:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, dropped = self._entries.popitem(last=False)
        self._characters -= dropped.characters
        self._evicted += 1
