"""One running variant of a pipeline: its place, its counts and its state, and what earlier processes recorded of it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal, cast, get_args

from speckit_memory.engine.shadowing.placement import REST_SECONDS, WINDOW, Place, Placement
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, open_if_there
from speckit_memory.memory.store.evaluation.records import Mode, PlacementChange
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant
from speckit_memory.pipeline.running.runner import Runner

if TYPE_CHECKING:
    from speckit_memory.engine.recording.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Earlier:
    """A variant's record: its place, since when (epoch seconds), and run times there (milliseconds, the latest
    last)."""

    place: Place = "beside"
    since: float = 0.0
    spent_ms: Sequence[float] = ()


def earlier(path: Path, control: str, variants: Iterable[str]) -> dict[str, Earlier] | None:
    """The records of variants of a control, by the hashes of their pipelines.

    Empty if there is no evaluation database; None if it cannot be read now, which health reports.
    """
    with suppress(SpeckitError):
        if (kept := open_if_there(path)) is None:
            return {}
        with kept as database:
            told = [one for one in database.retreats() if one.control == control and one.placement in get_args(Place)]
            moved = {one.variant: one for one in told}
            return {variant: _earlier(database, control, variant, moved.get(variant)) for variant in variants}
    return None


def _earlier(database: EvaluationDatabase, control: str, variant: str, last: PlacementChange | None) -> Earlier:
    place, since = (cast("Place", last.placement), last.at) if last else ("beside", 0.0)
    return Earlier(place, since, database.latest_costs(control, variant, since=since, most=WINDOW))


LOGGER = logging.getLogger(__name__)

Why = Literal["queue", "busy", "gone", "off", "late", "end", "rollout", "resume"]
WHY: dict[str, str] = {
    "queue": "another search was measured",
    "busy": "searches left no time for it",
    "gone": "its folder is no longer in the store",
    "off": "it is switched off, or could not be checked in time",
    "late": "the answer itself was incomplete because of its deadline",
    "end": "the process ended first",
    "rollout": "a flag is enabled for the session that asked",
    "resume": "a handover answered, through a separate pipeline",
}
"""Reasons why a variant did not see a query, in words."""


@dataclass(frozen=True, slots=True)
class ShadowState:
    """The state of a variant.

    `dropped` counts the queries that it did not see, by reason; `retreat` is the reason of the last step back, "" if
    there was none. Times are those of runs at the present place, in milliseconds. `waiting` counts the queries to be
    replayed.
    """

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
    """A variant with its runner and its counts. Thread-safe."""

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
        """Continues at the place where the variant ran last, in any process."""
        self.placement = Placement(self.placement.budget_ms, known.place, known.spent_ms)
        self.stepped_back = known.since
        if known.place != "beside":
            self.retreat = f"it stepped back to '{known.place}' before"

    @property
    def hash(self) -> str:
        # taken for every change of the four counters; `Shadows.report` swaps `unreported` under it
        """The hash of its pipeline."""
        return self.runner.pipeline.hash

    @property
    def place(self) -> Place:
        """Where the variant runs now."""
        return self.placement.place

    def rested(self) -> str:
        """Moves the variant back to the first place after `REST_SECONDS`. Returns the reason, "" if nothing changes."""
        if self.place == "beside" or time.time() - self.stepped_back <= REST_SECONDS:
            return ""
        self.placement.anew()
        self.retreat = ""
        return "it is tried again"

    def drop(self, why: Why, count: int = 1) -> None:
        """Counts queries that the variant did not see."""
        with self.guard:
            self.dropped[why] += count
            self.unreported[why] += count

    def ran(self, spent_ms: float, failure: str) -> str:
        """Counts an answered or failed query. Returns the reason if the variant steps back, else ""."""
        with self.guard:
            self.seen += 1
            self.failed += bool(failure)
            why = self.placement.ran(spent_ms)
        return self._told(why)

    def look(self) -> str:
        """Steps back if earlier runs demand it. Returns the reason, else ""."""
        return self._told(self.placement.look())

    def never_ended(self, step: str, seconds: float) -> str:
        """Switches the variant off because one of its steps does not end. Returns the reason."""
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
        """The present state."""
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


def tally_states(states: Sequence[ShadowState], control: str, recorder: Recorder) -> tuple[ShadowState, ...]:
    """The states of a control's variants, with the counts of live variants summed over all processes.

    If the evaluation database cannot be read, which health reports, the counts are those of this process.
    """
    recorder.write()
    if states:
        with suppress(SpeckitError), EvaluationDatabase.open(recorder.path, create=False) as database:
            return tuple(_with_counts(state, control, database) for state in states)
    return tuple(states)


def _with_counts(state: ShadowState, control: str, database: EvaluationDatabase) -> ShadowState:
    if state.mode == "shadow":
        return state
    found = database.tally(control, state.hash, state.mode)
    # a run that never ended is in the counters of this process alone
    seen, failed = max(found.seen, state.seen), max(found.failed, state.failed)
    return replace(state, seen=seen, failed=failed, dropped=found.dropped)
