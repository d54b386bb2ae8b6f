"""One variant while it runs beside a pipeline: where, how often, and what became of it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Literal

from speckit_memory.engine.shadowing.earlier import Earlier
from speckit_memory.engine.shadowing.placement import REST_SECONDS, Place, Placement
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import Mode
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant
from speckit_memory.pipeline.running.runner import Runner

if TYPE_CHECKING:
    from speckit_memory.engine.recording.recorder import Recorder

LOGGER = logging.getLogger(__name__)

Why = Literal["queue", "busy", "gone", "off", "late", "end", "rollout", "resume"]
WHY: dict[str, str] = {
    "queue": "another search was measured",
    "busy": "searches left no time for it",
    "gone": "its folder is not in the store any more",
    "off": "it is switched off, or whether it is was not known in time",
    "late": "the answer itself was incomplete, for its deadline",
    "end": "the process ended first",
    "rollout": "a flag is enabled for the share of sessions that asked",
    "resume": "a hand-over answered, which comes of a pipeline of its own",
}
"""Why a variant did not see a query, in words."""


@dataclass(frozen=True, slots=True)
class ShadowState:
    """How a variant fares. `dropped` counts the queries it did not see by reason; `retreat` says why it stepped back
    last, "" when it did not. Times are those of its runs at this place, in milliseconds. `waiting` queries are to be
    replayed for a shadow."""

    name: str
    mode: Mode
    flag: str
    hash: str
    sample: float
    place: Place
    seen: int
    failed: int
    dropped: Mapping[str, int]
    p95_ms: float
    budget_ms: float
    retreat: str = ""
    waiting: int = 0


@dataclass(slots=True)
class RunningVariant:
    """A variant with its runner and its counts. Safe to be used by several threads."""

    name: str
    mode: Mode
    flag: str
    sample: float
    runner: Runner
    placement: Placement
    stepped_back: float = 0.0
    retreat: str = ""
    seen: int = 0
    failed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    unreported: Counter[str] = field(default_factory=Counter)
    guard: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, one: CheckedVariant, budget_ms: float) -> RunningVariant:
        """A variant that has not run yet."""
        runner, variant = Runner(one.built()), one.variant
        mode: Mode = "interleaved" if variant.interleave else variant.mode
        return cls(variant.name, mode, variant.flag, variant.sample, runner, Placement(budget_ms))

    def goes_on(self, known: Earlier) -> None:
        """It is where it was when it ran last, in whichever process."""
        self.placement = Placement(self.placement.budget_ms, known.place, known.spent_ms)
        self.stepped_back = known.since
        if known.place != "beside":
            self.retreat = f"it stepped back to '{known.place}' before"

    @property
    def hash(self) -> str:
        """The hash of its pipeline."""
        return self.runner.pipeline.hash

    @property
    def place(self) -> Place:
        """Where it runs now."""
        return self.placement.place

    def rested(self) -> str:
        """Tries again what has been taken back for long enough. Why, "" where nothing changes."""
        if self.place == "beside" or time.time() - self.stepped_back <= REST_SECONDS:
            return ""
        self.placement.anew()
        self.retreat = ""
        return "it is tried again"

    def drop(self, why: Why, count: int = 1) -> None:
        """It does not see so many queries."""
        with self.guard:
            self.dropped[why] += count
            self.unreported[why] += count

    def ran(self, spent_ms: float, failure: str) -> str:
        """It has answered a query, or failed to. Why it steps back, "" where it stays."""
        with self.guard:
            self.seen += 1
            self.failed += bool(failure)
            why = self.placement.ran(spent_ms)
        return self._told(why)

    def look(self) -> str:
        """Steps back where earlier runs demand it. Why, "" where it stays."""
        return self._told(self.placement.look())

    def never_ended(self, step: str, seconds: float) -> str:
        """It is switched off, as a step of it does not end."""
        with self.guard:
            self.seen += 1
            self.failed += 1
            self.placement.off()
        return self._told(f"its step '{step}' did not end within {seconds:g} s")

    def _told(self, why: str) -> str:
        if why:
            self.retreat, self.stepped_back = why, time.time()
            LOGGER.warning("the variant '%s' steps back to '%s': %s", self.name, self.place, why)
        return why

    def state(self) -> ShadowState:
        """How it fares."""
        with self.guard:
            return ShadowState(
                self.name,
                self.mode,
                self.flag,
                self.hash,
                self.sample,
                self.place,
                self.seen,
                self.failed,
                dict(self.dropped),
                self.placement.p95_ms,
                self.placement.budget_ms,
                self.retreat,
            )


def tallied(states: Sequence[ShadowState], control: str, recorder: Recorder) -> tuple[ShadowState, ...]:
    """The states of variants of a control, those that run live with the counts of all processes.

    These are those of this process where the file cannot be read, which the report on health tells of its own.
    """
    recorder.write()
    if states and recorder.path.exists():
        with suppress(SpeckitError), EvaluationDatabase.open(recorder.path, create=False) as database:
            return tuple(_counted(state, control, database) for state in states)
    return tuple(states)


def _counted(state: ShadowState, control: str, database: EvaluationDatabase) -> ShadowState:
    if state.mode == "shadow":
        return state
    found = database.tally(control, state.hash, state.mode)
    # a run that never ended leaves no answer to be counted
    seen, failed = max(found.seen, state.seen), max(found.failed, state.failed)
    return replace(state, seen=seen, failed=failed, dropped=found.dropped)
