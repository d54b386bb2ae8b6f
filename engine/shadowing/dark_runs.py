"""Dark runs: measure a variant's cost in the serving process, on a sample of the searches (features P4, P10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import begun, harmless
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.shadowing.records import QueryRef, RunBeside
from speckit_memory.engine.shadowing.variant import RunningVariant, Why
from speckit_memory.pipeline.comparing.shadow import ShadowRequest

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore

LOGGER = logging.getLogger(__name__)
HANGING_SECONDS = 10.0
"""A run that takes longer is given up together with its thread."""
IDLE_SECONDS = 1.0
"""A run at the place "idle" begins this long after the last search."""
LONGEST_WAIT_SECONDS = 5.0
"""The longest time a run waits for such a moment."""

Note = Callable[[QueryRef, ShadowRequest, RunBeside], None]
OnHanging = Callable[[QueryRef, ShadowRequest, RunningVariant, str], None]


class DarkRuns:
    """Runs variants after a reply, in a separate thread, under the load that is to be measured.

    One search is measured at a time; searches that would be measured meanwhile are counted as dropped.
    """

    def __init__(self, ready: Callable[[], bool], note: Note, hanging: OnHanging) -> None:
        """Sets the callbacks.

        Args:
            ready: Asked before anything runs; whether the places of the variants are known.
            note: Receives each run.
            hanging: Receives a variant that does not end, with the step it hangs in.
        """
        self._ready = ready
        self._note = note
        self._hanging = hanging
        # guards `_turn`: held while a turn begins, never while a variant runs
        self._guard = Lock()
        self._turn: _Turn | None = None

    def begin(
        self, variants: Sequence[RunningVariant], named: QueryRef, before: ShadowRequest, opened: OpenStore
    ) -> None:
        """Runs variants for a query that was answered.

        Args:
            variants: The variants to run, in this order.
            named: Identifies the query.
            before: The control's run, from which variants continue.
            opened: The store that was searched.
        """
        with self._guard:
            if self._turn is not None and not self._turn.over:
                _drop(variants, "queue")
                return
            turn = self._turn = _Turn(list(variants))
            thread = turn.thread = Thread(
                target=self._work, args=(turn, named, before, opened), name="dark runs", daemon=True
            )
            try:
                thread.start()
            except (RuntimeError, MemoryError) as error:
                LOGGER.warning("a dark run could not be started: %s", error)
                self._turn = None
                _drop(variants, "queue")
                return
        begun(HANGING_SECONDS, lambda: self._give_up(turn, named, before))

    def finish(self, seconds: float, *, leaving: bool) -> bool:
        """Waits at most `seconds` for running work; returns whether it has ended. `leaving` drops the rest."""
        with self._guard:
            turn = self._turn
        if turn is None or turn.thread is None:
            return True
        turn.leaving = leaving
        turn.thread.join(seconds)
        done = not turn.thread.is_alive()
        if leaving and not done:
            turn.over = True
            _drop([*turn.left, *([turn.at] if turn.at else [])], "end")
        return done

    def _work(self, turn: _Turn, named: QueryRef, before: ShadowRequest, opened: OpenStore) -> None:
        with harmless("a dark run could not be made"):
            ready = self._ready()
            while turn.left and not turn.over:
                turn.at = turn.left.pop(0)
                if not ready or turn.at.place == "off":
                    turn.at.drop("off")
                    continue
                if turn.at.place == "idle" and not _idle(turn):
                    turn.at.drop("busy")
                    continue
                turn.begun = perf_counter()
                felt = SERVING.busy()
                with opened.read_model.reading() as snapshot:
                    run = before.alone(turn.at.runner, snapshot, turn.begins)
                felt = SERVING.busy() - felt
                if not turn.over:
                    self._note(named, before, RunBeside(turn.at, run, felt * 1e3))
        turn.over = True

    def _give_up(self, turn: _Turn, named: QueryRef, before: ShadowRequest) -> None:
        if turn.over or turn.at is None:
            return
        # the timer began with the turn, this run later: grant it the rest of its time
        if (left := turn.begun + HANGING_SECONDS - perf_counter()) > 0:
            begun(left, lambda: self._give_up(turn, named, before))
            return
        turn.over = True
        _drop(turn.left, "off")
        with harmless("a hanging variant could not be recorded"):
            self._hanging(named, before, turn.at, turn.step)


class _Turn:
    """The state of one thread."""

    def __init__(self, left: list[RunningVariant]) -> None:
        self.left = left
        self.at: RunningVariant | None = None
        self.step = ""
        self.begun = perf_counter()
        self.over = False
        self.leaving = False
        self.thread: Thread | None = None

    def begins(self, step: str) -> None:
        """Notes that a step begins."""
        self.step = step


def _idle(turn: _Turn) -> bool:
    """Waits for an idle moment. False if none comes in time or the process ends."""
    until = perf_counter() + LONGEST_WAIT_SECONDS
    while SERVING.quiet_for() < IDLE_SECONDS:
        if turn.leaving or perf_counter() > until:
            return False
        sleep(IDLE_SECONDS / 10)
    return True


def _drop(variants: Sequence[RunningVariant], why: Why) -> None:
    for variant in variants:
        variant.drop(why)
