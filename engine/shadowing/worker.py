"""The thread that runs variants: after the replies, at low priority, and never while somebody waits for a search."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter

from speckit_memory.engine.shadowing.gate import SERVING, Gate
from speckit_memory.engine.shadowing.harmless import harmless
from speckit_memory.engine.shadowing.job import Job
from speckit_memory.engine.shadowing.records import RunBeside
from speckit_memory.engine.shadowing.turn import BusyError, EndedError, Turn
from speckit_memory.engine.shadowing.variant import RunningVariant, Why
from speckit_memory.engine.shadowing.watchdog import Watchdog
from speckit_memory.pipeline.clock import opening
from speckit_memory.pipeline.describing import kind_of

LOGGER = logging.getLogger(__name__)

MOST_HELD = 4
"""States of the store that are held for queries whose variants have not run yet, each by a connection. Queries that saw
the same state share one."""
MOST_IDLE = 2
"""So many of them wait for an idle moment, or nothing would be left for variants that run after the replies."""
MOST_WAITING = 64
"""Queries that are to be noted, those among them for which nothing is held any more."""
LONGEST_HELD_SECONDS = 5.0
"""So long at most some state or other is held under load. Then all are let go together: the write-ahead log begins anew
only at a moment in which nobody reads an earlier state, and grows until then."""
SETTLED_SECONDS = 0.005
"""Variants begin so long after the last search, when its answer has been sent."""
IDLE_SECONDS = 1.0
"""What has been taken off the request path begins so long after the last search."""
HANGING_SECONDS = 10.0
"""A step that takes longer is given up, and its thread with it."""
NICENESS = 10


class Worker:
    """A bounded queue of jobs and its thread, which begins with the first job.

    Searches take the lock of the gate, too: nothing is let go, written or noted while it is held.
    """

    def __init__(
        self,
        done: Callable[[Job], None],
        hanging: Callable[[Job, RunningVariant, str], None],
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """`done` is called with each job that has nothing left to run; `hanging` with a variant whose step does not
        end, and that step; `ready` before anything runs, until it says that the variants may. None of them is called
        by who waits for an answer, but by the thread, and at the end."""
        self._done = done
        self._hanging = hanging
        self._ready = ready
        self._watchdog = Watchdog(self._look)
        self._gate: Gate = SERVING
        self._waiting: deque[Job] = deque()
        self._turn: Turn | None = None
        self._hurrying = ""
        self._held_since = 0.0
        self._prepared = False
        self._given_up: list[tuple[Job, RunningVariant, str]] = []
        self._dropped: list[Job] = []
        """Their states are to be let go."""

    def room(self) -> bool:
        """Whether the state of one more query may be held."""
        self._give_up_hanging()
        with self._gate.changed:
            held = self._held()
            return held < MOST_HELD and not (held and self._held_too_long())

    def _held(self) -> int:
        running = self._turn.task if self._turn else None
        jobs = [*self._waiting, *([running[0]] if running else [])]
        return len({id(job.held) for job in jobs if job.holding})

    def _held_too_long(self) -> bool:
        return perf_counter() - self._held_since > LONGEST_HELD_SECONDS

    def put(self, job: Job) -> bool:
        """Adds a query, without its variants where too many states are held. False when it cannot even be noted."""
        self._give_up_hanging()
        with self._gate.changed:
            if len(self._waiting) >= MOST_WAITING:
                return False
            if job.left and not self.room():
                self._drop(job, "queue")
            if job.holding and not self._held():
                self._held_since = job.since
            self._wait(job, self._waiting.append)
            going_on = (self._turn is not None and self._turn.alive) or self._begin()
            self._gate.changed.notify_all()
        self._let_go_dropped()
        return going_on

    def _drop(self, job: Job, why: Why) -> None:
        """Nothing of it runs. Its state is let go by whoever releases the lock of the gate."""
        job.drop(why)
        self._dropped.append(job)

    def _let_go_dropped(self, *, take_up_log: bool = False) -> None:
        """Lets the states go of what was dropped; the lock of the gate is not held."""
        with self._gate.changed:
            dropped, self._dropped = self._dropped, []
        for job in dropped:
            with harmless("the state of a query could not be let go"):
                job.end(take_up_log=take_up_log)

    def _wait(self, job: Job, add: Callable[[Job], None]) -> None:
        """The job waits for its turn; not for idle moments, when enough others do."""
        if job.idle and sum(other.idle for other in self._waiting) >= MOST_IDLE:
            self._drop(job, "queue")
        add(job)

    def finish(self, seconds: float, *, leaving: bool) -> bool:
        """Runs what waits, callers or not, and returns when that is done or the time is over: whether it is done.

        When the process is `leaving`, what runs in idle moments alone is left out, and what is not done is dropped.
        """
        until = perf_counter() + seconds
        with self._gate.changed:
            self._hurrying = "leaving" if leaving else "all"
            self._gate.changed.notify_all()
            while self._busy() and (left := until - perf_counter()) > 0:
                self._gate.changed.wait(left)
            finished = not self._busy()
            self._hurrying = "leaving" if leaving else ""
            running, ended = self._end() if leaving else (None, ())
        if leaving:
            self._watchdog.end()
        if running is not None:
            running.abandon()
        for job in ended:
            self._settle(job)
        self.look_after()
        return finished

    def look_after(self) -> None:
        """Gives a thread up whose step does not end, and sees to it that this is known."""
        self._give_up_hanging()
        self._let_go_dropped()
        with self._gate.changed:
            given_up, self._given_up = self._given_up, []
        for job, variant, step in given_up:
            with harmless("a variant that hangs could not be noted"):
                job.abandon()
                self._hanging(job, variant, step)
            self._settle(job)

    def _look(self) -> float | None:
        self.look_after()
        with self._gate.changed:
            if self._turn is None or self._turn.task is None:
                return None
            since = self._turn.since
            return HANGING_SECONDS if since is None else max(0.0, since + HANGING_SECONDS - perf_counter())

    def _give_up_hanging(self) -> None:
        """Where a step does not end, another thread takes the place of its own and goes on with the queue.

        It also lets the state go and notes what happened: who finds out may be one that answers a search.
        """
        with self._gate.changed:
            turn = self._turn
            if turn is None or turn.since is None or perf_counter() - turn.since < HANGING_SECONDS:
                return
            turn.over = True
            job, variant = turn.task or (None, None)
            if job and variant:
                variant.placement.off()  # before the next query asks for it
                job.drop("state")
                self._given_up.append((job, variant, turn.step))
            self._begin()

    def _busy(self) -> bool:
        return bool(self._waiting) or (self._turn is not None and self._turn.task is not None)

    def _begin(self) -> bool:
        """Begins a thread. Where that cannot be, nothing that waits is ever run."""
        turn = Turn()
        turn.thread = threading.Thread(target=self._work, args=(turn,), name="shadows", daemon=True)
        try:
            turn.thread.start()
        except (RuntimeError, MemoryError) as error:
            LOGGER.warning("%d queries are seen by no variant: %s", len(self._waiting), error)
            for job in self._waiting:
                self._drop(job, "queue")
            self._waiting.clear()
            self._turn = None
            return False
        self._turn = turn
        return True

    def _end(self) -> tuple[Job | None, list[Job]]:
        """Drops what is left: the job that a thread is still at, and all that are to be settled."""
        turn, self._turn = self._turn, None
        running = None
        if turn is not None:
            turn.over = True
            if turn.task:
                running, variant = turn.task
                if variant and variant not in running.left:
                    variant.drop("end")
                self._waiting.append(running)
        ended = list(self._waiting)
        for job in ended:
            job.drop("end")
        self._waiting.clear()
        self._gate.changed.notify_all()
        return running, ended

    def _work(self, turn: Turn) -> None:
        if sys.platform == "linux":  # elsewhere it is the whole process that has a priority
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        self.look_after()
        while self._goes_on(turn):
            pass

    def _goes_on(self, turn: Turn) -> bool:
        """Does what is next; whether there may be more. Nothing of it is kept while the thread waits."""
        if (task := self._next(turn)) is None:
            return False
        job, variant = task
        try:
            if variant is not None and self._may_run(job):
                self._run(job, variant, turn)
        except EndedError:
            return False
        except BusyError:
            if variant is not None:
                variant.drop("busy")
            job.drop("busy")
        except BaseException as error:  # nothing of a variant ends this thread
            if variant is not None:
                job.ran(job.failed(variant, kind_of(error), 0.0))
        with self._gate.changed:
            turn.since = None
            if turn.over:
                return False
            if job.left:
                self._wait(job, self._waiting.appendleft)
                turn.task = None
                self._gate.changed.notify_all()
                return True
        self._settle(job, take_up_log=True)
        with self._gate.changed:
            turn.task = None
            self._gate.changed.notify_all()
        return True

    def _may_run(self, job: Job) -> bool:
        """Whether the variant that was chosen runs. The first time the job has to wait for its turn once more, as what
        is known of variants now decides where they run."""
        if self._prepared:
            return True
        with harmless("what is known of variants could not be read"):
            self._prepared = self._ready()
        if not self._prepared:
            job.drop("off")
        return False

    def _next(self, turn: Turn) -> tuple[Job, RunningVariant | None] | None:
        """What runs next, once it may; None when the thread has been given up."""
        while True:
            self._let_go_dropped(take_up_log=True)
            with self._gate.changed:
                if turn.over:
                    return None
                self._let_go()
                if self._dropped:
                    continue
                found, wait = self._found()
                if found:
                    turn.task = found
                    return found
                if self._hurrying == "leaving" and self._waiting:
                    for job in self._waiting:
                        job.drop("end")
                    continue
                self._gate.changed.wait(self._patience(None if self._gate.closed else wait))

    def _found(self) -> tuple[tuple[Job, RunningVariant | None] | None, float | None]:
        """What may run now, taken from what waits; else the seconds without searches after which something may."""
        quiet = self._gate.quiet_for()
        if self._hurrying == "all":
            quiet = IDLE_SECONDS
        elif self._hurrying:
            quiet = SETTLED_SECONDS
        wait: float | None = None
        for place, needed in (("beside", SETTLED_SECONDS), ("idle", IDLE_SECONDS)):
            for job in self._waiting:
                if (found := job.next_at(place)) is None:
                    continue
                if quiet >= needed or self._only_to_note(job):
                    self._waiting.remove(job)
                    return (job, found[0]), None
                wait = min(needed - quiet, wait or needed)
                break
        return None, wait

    def _only_to_note(self, job: Job) -> bool:
        """Whether searches have left no time for long, and nothing is to be run but a note to be made."""
        return not job.left and perf_counter() - job.since > LONGEST_HELD_SECONDS

    def _let_go(self) -> bool:
        """Under load, lets all states go that wait when states have been held for long; whether that is so."""
        if self._hurrying or not self._held() or not self._held_too_long():
            return False
        for job in self._waiting:
            if job.holding and job.left:
                self._drop(job, "busy")
        return True

    def _patience(self, most: float | None) -> float | None:
        """How long to wait for something to change: not beyond the moment at which states are let go."""
        if self._hurrying or not self._held():
            return most
        left = max(0.001, self._held_since + LONGEST_HELD_SECONDS - perf_counter())
        return left if most is None else min(most, left)

    def _run(self, job: Job, variant: RunningVariant, turn: Turn) -> None:
        felt, at = 0.0, self._gate.busy()

        def pause(step: str) -> None:
            nonlocal felt, at
            with opening(), self._gate.changed:  # no time of the variant
                felt += self._gate.busy() - at
                turn.since = None
                while self._gate.closed and not self._hurrying and not turn.over:
                    if self._let_go():
                        raise BusyError
                    self._gate.changed.wait(self._patience(None))
                if turn.over:
                    raise EndedError
                turn.since, turn.step = perf_counter(), step
                at = self._gate.busy()

        self._watchdog.watch(HANGING_SECONDS)
        run = job.run(variant, pause)
        with self._gate.changed:
            if turn.over:
                raise EndedError
            turn.since = None
        if run is not None:
            felt += self._gate.busy() - at
            waited_ms = run.spent_ns / 1e6 if self._hurrying == "leaving" else felt * 1e3
            overhead_ms = job.handing_ms + waited_ms
            job.ran(RunBeside(variant, run, overhead_ms))

    def _settle(self, job: Job, *, take_up_log: bool = False) -> None:
        with harmless("the state of a query could not be let go"):
            job.end(take_up_log=take_up_log)
        if job.settles():
            with harmless("a query with its variants could not be noted"):
                self._done(job)
