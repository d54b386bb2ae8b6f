"""Answers that are given again as long as nothing has changed what they depend on (feature T25)."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.server.replies.envelope import Fitted

SECONDS = 60.0
"""So long an answer holds at most: memories age by the clock, which nothing writes."""
SLEWED_SECONDS = 1.0
"""By so much the calendar may run ahead of the time that passes, or behind it, between two questions: clocks are
adjusted a little all the time. More is a machine that slept, which monotonic clocks do not count, or a date that was
set: memories have become older, or younger, than answers say."""
MOST_ENTRIES = 1_000
MOST_CHARACTERS = 4_000_000
"""Of all answers together, text and document: about 20 MB of memory. It is some 400 searches of the usual length."""


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """What became of the calls of tools whose answers may be kept, since the server began.

    `hits` were answered from here, `misses` were not there, `passed` must not be kept: those of a session, explained or
    degraded ones, those that were to bypass it, and all while pipelines run beside. `changed` counts how often
    everything was dropped for a change, `evicted` the answers that were dropped for age or room.
    """

    hits: int
    misses: int
    passed: int
    changed: int
    evicted: int
    entries: int
    characters: int

    def as_json(self) -> dict[str, int]:
        """As plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class _Entry:
    made_at: float
    answer: Fitted
    characters: int


class AnswerCache:
    """Keeps answers of one state only: whatever is committed by any process, and another pipeline, drops them all.

    Safe to be used by several threads.
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
        """`standing` names what answers depend on now beside their arguments, None where none may be kept; it raises
        SpeckitError where there is nothing to ask. An answer is kept for so many `seconds`; 0 keeps none. `clock` tells
        the time that passes, `calendar` the date that memories age by, both in seconds."""
        self._standing = standing
        self._seconds = seconds
        self._most_entries = most_entries
        self._most_characters = most_characters
        self._clock = clock
        self._calendar = calendar
        self._ahead = calendar() - clock()
        self._dates = 0
        self._guard = Lock()
        self._of: Hashable | None = None
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._characters = 0
        self._hits = self._misses = self._passed = self._changed = self._evicted = 0

    def answered(self, tool: str, values: Mapping[str, Any], make: Callable[[], Fitted]) -> tuple[Fitted, bool]:
        """The answer of a tool to these values of all its parameters, and whether it had been made before.

        One is kept that was made while nothing changed, so that it is of the state that it is kept for.
        """
        before = self._now()
        if before is None:
            return self.passing(make)
        key = f"{tool} {json.dumps(values, sort_keys=True)}"
        with self._guard:
            self._turn_to(before)
            found = self._entries.get(key)
            if found is not None:
                self._hits += 1
                return found.answer, True
        made = make()
        if made.again is None:
            with self._guard:
                self._passed += 1
            return made, False
        after = self._now()
        with self._guard:
            self._misses += 1
            if after == before:
                self._keep(before, key, made)
        return made, False

    def passing(self, make: Callable[[], Fitted]) -> tuple[Fitted, bool]:
        """An answer that is neither looked for nor kept, as `answered` gives one; it counts as passed."""
        made = make()
        with self._guard:
            self._passed += 1
        return made, False

    def clear(self) -> None:
        """Drops everything, for the sake of the room it takes."""
        with self._guard:
            self._turn_to(None)

    def figures(self) -> CacheFigures:
        """How it fares."""
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
        """What answers depend on now, the date included; None where none may be kept."""
        if not self._seconds:
            return None
        try:
            standing = self._standing()
        except SpeckitError:
            return None  # what is wrong is told by whoever answers
        return None if standing is None else (standing, self._date())

    def _date(self) -> int:
        """A number that changes when the calendar jumps."""
        with self._guard:
            ahead = self._calendar() - self._clock()
            self._dates += abs(ahead - self._ahead) > SLEWED_SECONDS
            self._ahead = ahead
            return self._dates

    def _turn_to(self, standing: Hashable | None) -> None:
        """Drops what is of another state, and what has become old."""
        if standing != self._of:
            self._changed += bool(self._entries)
            self._entries.clear()
            self._characters = 0
            self._of = standing
        until = self._clock() - self._seconds
        while self._entries and next(iter(self._entries.values())).made_at <= until:
            self._drop_oldest()

    def _keep(self, standing: Hashable, key: str, answer: Fitted) -> None:
        self._turn_to(standing)
        size = len(key) + answer.characters()
        if size > self._most_characters or key in self._entries:  # another thread was faster
            return
        self._entries[key] = _Entry(self._clock(), replace(answer, after=None), size)
        self._characters += size
        while len(self._entries) > self._most_entries or self._characters > self._most_characters:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, dropped = self._entries.popitem(last=False)
        self._characters -= dropped.characters
        self._evicted += 1
