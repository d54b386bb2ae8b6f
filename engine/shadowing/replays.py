"""Replays recorded queries for the shadows of a pipeline: which queries wait for which shadow, and the results."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.config.workspace.workspace_file import ExtensionSettings
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.shadowing.replayer import ENDED, ReplayTask
from speckit_memory.engine.shadowing.variant import ShadowState
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, open_if_there
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    Observation,
    PipelineRecord,
    Replay,
    VariantRecord,
)
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors.vectors import MODEL
from speckit_memory.pipeline.comparing.shadow import is_sampled
from speckit_memory.pipeline.configuration.builder import CheckedPipeline
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant
from speckit_memory.pipeline.process.yielding import Pause
from speckit_memory.pipeline.roles.composition import Pipeline

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.engine.shadowing.replay_process import ReplayProcess

LOGGER = logging.getLogger(__name__)
BATCH = 20
"""Number of replays written in one transaction. A killed process loses at most this many, which wait again."""
TURN_SECONDS = 20.0
"""Time one variant is replayed before the next one has its turn, so that a slow variant does not starve the others."""
ALWAYS_FAILED = 10
"""A variant that has failed on all of its queries is given up after this many."""
MOST_ENDED = 3
"""A variant is given up after this many of its processes had to be ended."""
OnReplays = Callable[[int, int], None]
OnCount = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Shadow:
    """One variant with its recorded counts: queries replayed, queries failed, and processes ended."""

    one: CheckedVariant
    arm: Arm
    asked: int
    failed: int
    ended: int
    waiting: tuple[int, ...]

    @property
    def given_up(self) -> str:
        """The reason why no more queries are replayed for it, "" if they are."""
        if self.ended >= MOST_ENDED:
            return f"{self.ended} of its processes crashed or hung"
        # Chained comparison: failed == asked and asked >= ALWAYS_FAILED.
        if self.failed == self.asked >= ALWAYS_FAILED:
            return f"it failed on all of {self.asked} queries"
        return ""

    @property
    def left(self) -> int:
        """How many queries wait for it."""
        return 0 if self.given_up else len(self.waiting)


class Replays:
    """The shadows of one pipeline. Waiting queries are derived from records, so no work is lost with a process."""

    def __init__(
        self,
        pipeline: Pipeline,
        checked: CheckedPipeline,
        variants: Sequence[CheckedVariant],
        extensions: ExtensionSettings,
        config: Settings,
        recorder: Recorder,
    ) -> None:
        """Replays kept queries for shadows.

        Args:
            pipeline: The control.
            checked: The control's checked configuration.
            variants: The shadows: variants that are compared and not interleaved.
            extensions: How components of other distributions run.
            config: The settings of the workspace.
            recorder: Holds the kept queries.
        """
        self._pipeline = pipeline
        self._control = checked
        self._extensions = extensions
        self._config = config
        self._recorder = recorder
        self._shadows = variants
        # Set by the thread that replays, read by `end` in another one; ending a process twice is harmless.
        self._process: ReplayProcess | None = None
        self._ended = False

    def end(self) -> None:
        """Stops replaying for good. Another thread may be waiting for the current replay."""
        self._ended = True
        if (process := self._process) is not None:
            process.end()

    def states(self, opened: OpenStore) -> tuple[ShadowState, ...]:
        """The state of each shadow according to the records."""
        if not self._shadows:
            return ()
        self._recorder.write()
        try:
            with EvaluationDatabase.open(self._recorder.path, create=False) as database:
                found = self._found(database, opened)
        except SpeckitError:  # health reports this separately
            found = [_Shadow(one, self._arm(one, ""), 0, 0, 0, ()) for one in self._shadows]
        budget = self._pipeline.budgets_ms["shadow"]
        return tuple(
            ShadowState(
                one.one.variant.name,
                "shadow",
                one.one.variant.flag,
                one.arm.variant,
                one.one.variant.sample,
                "off" if one.given_up else "replay",
                one.asked,
                one.failed,
                {},
                0.0,
                budget,
                one.given_up,
                one.left,
            )
            for one in found
        )

    def run(
        self,
        opened: OpenStore,
        seconds: float | None = None,
        progress: OnReplays = lambda _done, _total: None,
        pause: Pause = lambda: None,
    ) -> bool:
        """Replays waiting queries.

        Args:
            opened: The store to replay on.
            seconds: Time limit; None for no limit.
            progress: Called with the numbers of replayed and of all queries after each batch.
            pause: Called between two queries; an exception from it ends the run.

        Returns:
            Whether no query waits any more.

        Raises:
            SpeckitError: The evaluation database cannot be used, or no process can be started.
        """
        if not self._shadows:
            return True
        self._recorder.write(at_once=True)
        if (kept := open_if_there(self._recorder.path)) is None:
            return True
        until = float("inf") if seconds is None else time.monotonic() + seconds
        with kept as database:
            self._begin(database, opened)
            found = self._found(database, opened)
            total, done = sum(one.left for one in found), 0

            def tell(count: int) -> None:
                nonlocal done
                done += count
                progress(min(done, total), total)

            while (left := sum(one.left for one in found)) and not self._ended and time.monotonic() < until:
                for shadow in found:
                    if shadow.left:
                        end = min(until, time.monotonic() + TURN_SECONDS)
                        self._turn(database, shadow, end, pause, tell)
                # Counted again from the records: other processes may have replayed or recorded queries meanwhile.
                found = self._found(database, opened)
                if sum(one.left for one in found) >= left:
                    break  # other processes record queries faster than this one replays them
            return not sum(one.left for one in found)

    def _turn(self, database: EvaluationDatabase, shadow: _Shadow, end: float, pause: Pause, tell: OnCount) -> None:
        """Replays for one variant until it is given up, nothing waits or its turn is over; `tell` gets batch sizes."""
        # imported here: searches start faster without it
        from speckit_memory.engine.shadowing.replay_process import ReplayProcess, ReplayProcessEnded

        variant = shadow.one.variant
        task = ReplayTask(
            self._config.db,
            self._config.root,
            dict(self._config.environ),
            self._extensions,
            self._config.vector_index,
            shadow.arm,
            self._control.effective,
            variant.effective,
            variant.flag,
        )
        batch: list[Replay] = []

        def write() -> None:
            database.replayed(batch)
            tell(len(batch))
            batch.clear()

        try:
            for number in shadow.waiting:
                pause()
                if self._ended or time.monotonic() > end:
                    return
                # The text may have been pruned since the list was read.
                if (seen := database.observation(number)) is None or seen.query.question is None:
                    continue
                try:
                    process = self._process = self._process or ReplayProcess(task)
                    batch.append(process.replay(seen))
                except ReplayProcessEnded as ended:
                    self._process = None
                    if self._ended:
                        return
                    batch.append(_failed(seen, shadow.arm, variant.flag, str(ended)))
                    LOGGER.warning("the variant '%s' was ended: %s", variant.name, ended)
                # A failure is written at once, so that the test below counts it.
                if len(batch) >= BATCH or batch[-1].variant.answer.failure:
                    write()
                    if _Shadow(shadow.one, shadow.arm, *database.arm(shadow.arm, ENDED), ()).given_up:
                        return
        finally:
            if self._process is not None:
                self._process.end()
            self._process = None
            if batch:
                write()

    def _arm(self, one: CheckedVariant, epoch: str) -> Arm:
        return Arm(self._pipeline.hash, one.checked.hash, epoch)

    def _begin(self, database: EvaluationDatabase, opened: OpenStore) -> None:
        epoch, pipeline = epoch_of(opened), self._pipeline
        control = PipelineRecord(pipeline.hash, pipeline.name, pipeline.budgets_ms["shadow"], self._control.ordering)
        for one in self._shadows:
            other = one.checked
            budget = other.effective.budgets_ms["shadow"]
            variant = PipelineRecord(other.hash, one.variant.name, budget, other.ordering)
            database.begin(self._arm(one, epoch), (control, variant))

    def _found(self, database: EvaluationDatabase, opened: OpenStore) -> list[_Shadow]:
        epoch = epoch_of(opened)
        return [self._kept(database, one, self._arm(one, epoch)) for one in self._shadows]

    def _kept(self, database: EvaluationDatabase, one: CheckedVariant, arm: Arm) -> _Shadow:
        # The sample is decided by query and variant, so that every process replays the same ones.
        waiting = tuple(
            number for number, query in database.waiting(arm) if is_sampled(query, arm.variant, one.variant.sample)
        )
        return _Shadow(one, arm, *database.arm(arm, ENDED), waiting)


def epoch_of(opened: OpenStore) -> str:
    """A hash of everything except the pipeline that replayed answers depend on.

    It covers the product version, the embedding model and the store's creation time, since ids are valid for one store.
    """
    with opened.database.snapshot_read() as connection:
        begun = value(connection, "SELECT min(applied_at) FROM migrations")
        model = get_meta(connection, MODEL)
    return sha256(f"{version('speckit-memory')}:{model}:{begun}".encode()).hexdigest()[:12]


def _failed(seen: Observation, arm: Arm, flag: str, failure: str) -> Replay:
    """A query during which the process had to be ended. The control's answer is the one that was served."""
    variant = VariantRecord("shadow", AnswerRecord(arm.variant, failure=failure), flag)
    return Replay(seen.query.id, arm, "present", seen.query.state, seen.control, variant)
