"""Records searches for comparisons in a separate thread, so that failures never reach an answer."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from threading import Lock, Timer

from speckit_memory.config.workspace.options import RecordingOptions
from speckit_memory.engine.background.best_effort import begun
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    DroppedQueries,
    Mode,
    Observation,
    PipelineRecord,
    PlacementChange,
    ScoreSample,
    UsageSignal,
)
from speckit_memory.memory.store.file.guarding.store_file import may_only_be_read

LEAST_SHARED = 0.5
"""Minimum share of the content words of the shorter question that both questions contain."""


def are_similar(first: str, second: str) -> bool:
    """Whether two questions share half of the content words of the shorter one, in any inflection.

    A question that is rephrased at once says that the first answer did not help (Hassan, Shi, Craswell and Ramsey,
    "Beyond clicks: query reformulation as a predictor of search satisfaction", CIKM 2013).
    """
    one, other = ({*_analyser().tokens(text)} for text in (first, second))
    return bool(one and other) and len(one & other) >= LEAST_SHARED * min(len(one), len(other))


@cache
def _analyser() -> Analyser:
    return Analyser()


LOGGER = logging.getLogger(__name__)
SECONDS = 0.1
"""Delay of a write after the first pending record; one transaction writes many queries."""
MOST_WAITING = 1_024
"""Maximum number of pending records; further ones are counted as dropped."""
AGAIN_SECONDS = 30.0
"""Pause after a failure other than a busy file; records that arrive meanwhile are only counted."""
PRUNE_SECONDS = 600.0
_DAY = 86_400.0
_MB = 1_000_000

Making = Callable[[], Observation]
"""Builds the record of a query, which takes longer than an answer should wait."""
Telling = Callable[[frozenset[int]], Iterable[UsageSignal]]
"""Returns signs of use for recently served memories; called when there is time for it."""


@dataclass(slots=True)
class _Waiting:
    """Pending records."""

    observations: list[Observation] = field(default_factory=list)
    makings: list[tuple[str, Making]] = field(default_factory=list)
    scorings: list[Callable[[], ScoreSample]] = field(default_factory=list)
    scored: list[ScoreSample] = field(default_factory=list)
    signs: list[UsageSignal] = field(default_factory=list)
    tellings: list[Telling] = field(default_factory=list)
    retreats: list[PlacementChange] = field(default_factory=list)
    pipelines: dict[str, PipelineRecord] = field(default_factory=dict)
    lost: Counter[tuple[str, str, Mode, str]] = field(default_factory=Counter)

    def __len__(self) -> int:
        beside = len(self.scorings) + len(self.scored) + len(self.signs) + len(self.tellings) + len(self.retreats)
        return len(self.observations) + len(self.makings) + beside

    @property
    def to_tell(self) -> bool:
        """Whether anything but signs is pending; signs need an earlier recorded answer."""
        return bool(self.observations or self.makings or self.scorings or self.scored or self.retreats or self.lost)

    def joined(self, later: _Waiting) -> _Waiting:
        """These records followed by later ones."""
        names = [one.name for one in fields(self) if one.name != "pipelines"]
        both = {name: getattr(self, name) + getattr(later, name) for name in names}
        return _Waiting(**both, pipelines=self.pipelines | later.pipelines)


class Recorder:
    """Stores observations of answers for comparisons. Every method returns at once; a thread writes shortly afterwards.

    Thread-safe. While the database is busy, everything waits; if it cannot be used, nothing is recorded, and `problem`
    says why. Lost records are counted, and the count is written once possible.
    """

    def __init__(self, store: Path, wanted: RecordingOptions, seconds: float = SECONDS) -> None:
        """For the store at this path. Its evaluation database is created with the first record."""
        self.wanted = wanted
        self.path = evaluation_file(store)
        self.problem: SpeckitError | None = None
        self._store = store
        self._seconds = seconds
        # Order of locks: `_writing` before `_guard`. `_guard` is held for moments only, never while a record is made
        # or the file is written, so that an answer never waits for either.
        self._guard, self._writing = Lock(), Lock()
        self._waiting = _Waiting()
        self._timer: Timer | None = None
        self._database: EvaluationDatabase | None = None
        self._silent_until = 0.0
        self._pruned_at = 0.0

    @property
    def on(self) -> bool:
        """Whether recording is enabled."""
        return self.wanted.record != "off"

    @property
    def keeps_texts(self) -> bool:
        """Whether texts are recorded, so that queries can be replayed."""
        return self.on and self.wanted.texts

    @property
    def only_read(self) -> bool:
        """Whether the store is read-only, so that nothing can be recorded."""
        return may_only_be_read(self._store)

    def record(self, seen: Observation, pipelines: Iterable[PipelineRecord] = ()) -> None:
        """Records a query with its answers, and the pipelines behind the hashes."""
        if not self._room():
            self._lost(seen, "busy")
            return
        with self._guard:
            self._waiting.observations.append(seen)
            self._waiting.pipelines |= {pipeline.hash: pipeline for pipeline in pipelines}
        self._soon()

    def record_later(self, control: str, making: Making, pipelines: Iterable[PipelineRecord] = ()) -> None:
        """Records a query that this pipeline answered; `making` builds the record in the thread."""
        if not self._room():
            self._count(control, [("", "shadow")], "busy")
            return
        with self._guard:
            self._waiting.makings.append((control, making))
            self._waiting.pipelines |= {pipeline.hash: pipeline for pipeline in pipelines}
        self._soon()

    def dropped(self, lost: DroppedQueries) -> None:
        """Records that variants did not see queries."""
        with self._guard:
            self._waiting.lost[lost.control, lost.variant, lost.mode, lost.why] += lost.count
        self._soon()

    def observe(self, making: Callable[[], ScoreSample]) -> None:
        """Records the score parts of an answer, which the thread computes."""
        self._note(lambda waiting: waiting.scorings.append(making))

    def sign(self, sign: UsageSignal) -> None:
        """Records that a memory was used."""
        self._note(lambda waiting: waiting.signs.append(sign))

    def ask_later(self, telling: Telling) -> None:
        """Records signs of use that are searched when there is time."""
        self._note(lambda waiting: waiting.tellings.append(telling))

    def retreat(self, retreat: PlacementChange) -> None:
        """Records that a variant has changed its place."""
        self._note(lambda waiting: waiting.retreats.append(retreat))

    def write(self, *, at_once: bool = False) -> bool:
        """Writes pending records; returns whether none is left. Never raises.

        For half a minute after a failure nothing is tried, except with `at_once`.
        """
        with self._writing:
            with self._guard:  # swapped under the lock and written without it: callers never wait for the file
                waiting, self._waiting, timer, self._timer = self._waiting, _Waiting(), self._timer, None
            if timer is not None:
                timer.cancel()
            if not waiting.to_tell and not self.path.exists():
                return True  # signs are useless without recorded answers
            if not (waiting or waiting.lost):
                return True
            silent = not at_once and time.monotonic() < self._silent_until
            if silent or not self._store.exists() or self.only_read:
                self._given_up(waiting)
                return True
            try:
                self._written(waiting)
            except SpeckitError as error:
                # busy, or a session was lost before anything was written
                if error.code == "E022" or (error.code == "E021" and error.problems[0].retryable):
                    LOGGER.info("%d notes are written later: %s", len(waiting), error)
                    with self._guard:
                        # Later records stay behind the earlier ones.
                        self._waiting = waiting.joined(self._waiting)
                    return False
                self._failed(error, waiting)
            except Exception as error:  # a defect here must not reach an answer
                LOGGER.exception("notes could not be written")
                self._failed(SpeckitError("E021", f"{self.path}: {type(error).__name__}"), waiting)
            return True

    def close(self) -> None:
        """Writes pending records, as far as possible within two seconds, and closes the file."""
        if not self.write() and not self.write():
            LOGGER.warning("%s is still busy: %d notes are lost", self.path, len(self._waiting))
        with self._writing:
            database, self._database = self._database, None
            if database is not None:
                database.close()

    def _note(self, add: Callable[[_Waiting], None]) -> None:
        if self._room():
            with self._guard:
                add(self._waiting)
            self._soon()

    def _room(self) -> bool:
        # Read without the guard: a few records more than the limit do no harm.
        return self.on and len(self._waiting) < MOST_WAITING

    def _soon(self) -> None:
        if not self.on:
            return
        with self._guard:
            # One timer at a time: it collects everything that arrives until it fires.
            if self._timer is None:
                self._timer = begun(self._seconds, self._write_in_time)

    def _write_in_time(self) -> None:
        if not self.write():
            self._soon()

    def _written(self, waiting: _Waiting) -> None:
        database = self._database
        if database is None:
            database = self._database = EvaluationDatabase.open(self.path)
        now = time.time()
        broken = self._make(waiting)
        database.record(
            waiting.observations,
            [DroppedQueries(*key, count=count) for key, count in waiting.lost.items()],
            signs=waiting.signs,
            scorings=waiting.scored,
            pipelines=waiting.pipelines.values(),
            retreats=waiting.retreats,
            are_similar=are_similar,
        )
        self.problem = broken
        waiting.observations, waiting.signs, waiting.lost = [], [], Counter()  # written: must not be retried below
        waiting.scored, waiting.retreats = [], []
        if waiting.tellings:
            brought = database.brought(now)
            signs = [sign for telling in waiting.tellings for sign in telling(brought)] if brought else []
            database.record((), signs=signs)
        if time.monotonic() - self._pruned_at > PRUNE_SECONDS or not self._pruned_at:
            before, most = now - self.wanted.keep_days * _DAY, self.wanted.max_mb * _MB
            words = now - self.wanted.keep_texts * _DAY if self.wanted.texts else float("inf")
            if not database.prune(before=before, max_bytes=most, texts_before=words):
                self._pruned_at = time.monotonic()

    def _make(self, waiting: _Waiting) -> SpeckitError | None:
        """Builds the records that were left to the thread. A failure is counted and affects no other record.

        Returns the last failure, for `problem`.
        """
        broken: SpeckitError | None = None
        while waiting.makings or waiting.scorings:
            try:
                if waiting.makings:
                    # Taken off the list first: a `making` that raises is not tried again.
                    control, making = waiting.makings.pop(0)
                    waiting.lost[control, "", "shadow", "off"] += 1  # undone below unless `making` raises
                    waiting.observations.append(making())
                    waiting.lost[control, "", "shadow", "off"] -= 1
                else:
                    waiting.scored.append(waiting.scorings.pop(0)())
            except Exception as error:  # a defect here must not reach an answer
                LOGGER.exception("a note could not be made")
                broken = SpeckitError("E021", f"{self.path}: a note could not be made: {type(error).__name__}")
        # Unary plus drops the counts that are not positive.
        waiting.lost = +waiting.lost
        return broken

    def _failed(self, error: SpeckitError, waiting: _Waiting) -> None:
        LOGGER.warning("recording stops: %s", error)
        self.problem = error
        self._silent_until = time.monotonic() + AGAIN_SECONDS
        database, self._database = self._database, None
        if database is not None:
            database.close()
        self._given_up(waiting)

    def _given_up(self, waiting: _Waiting) -> None:
        with self._guard:
            self._waiting.lost += waiting.lost
        for seen in waiting.observations:
            self._lost(seen, "off")
        for control, _ in waiting.makings:
            self._count(control, [("", "shadow")], "off")

    def _lost(self, seen: Observation, why: str) -> None:
        """Counts a lost query once per variant that ran for it, or once without a variant."""
        beside = [(one.answer.pipeline, one.mode) for one in seen.variants]
        self._count(seen.control.pipeline, beside or [("", "shadow")], why)

    def _count(self, control: str, beside: list[tuple[str, Mode]], why: str) -> None:
        if self.on:
            with self._guard:
                for variant, mode in beside:
                    self._waiting.lost[control, variant, mode, why] += 1
