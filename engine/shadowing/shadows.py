"""The variants beside one pipeline: which of them see a query, what becomes of their answers, and how they fare."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from speckit_memory.engine.observed import pipeline_record
from speckit_memory.engine.questions import Question
from speckit_memory.engine.shadowing.harmless import harmless
from speckit_memory.engine.shadowing.job import Job
from speckit_memory.engine.shadowing.recorder import Earlier, Recorder
from speckit_memory.engine.shadowing.records import Named, RunBeside, observation
from speckit_memory.engine.shadowing.search import Search
from speckit_memory.engine.shadowing.variant import RunningVariant, ShadowState
from speckit_memory.engine.shadowing.worker import HANGING_SECONDS, Worker
from speckit_memory.memory.store.evaluation.records import Dropped, Retreat
from speckit_memory.memory.store.file.holding import Held
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.pipeline.composition import Pipeline
from speckit_memory.pipeline.shadow import sampled, shuffled

if TYPE_CHECKING:
    from speckit_memory.engine.assembly import OpenStore

LEAVING_SECONDS = 1.5
"""How long the end of a process waits for variants that have not run."""


class Shadows:
    """Runs variants after the replies, and hands what it observes to a recorder."""

    def __init__(
        self,
        control: Pipeline,
        variants: Iterable[RunningVariant] = (),
        recorder: Recorder | None = None,
        *,
        inline: Iterable[RunningVariant] = (),
        texts: bool = False,
        earlier: Callable[[Iterable[str]], Mapping[str, Earlier] | None] | None = None,
    ) -> None:
        """`inline` are variants whose answers each search waits for; `texts` tells whether what was asked is kept.

        `earlier` says what is known of variants from before, by their hashes; None where that cannot be told now. It is
        asked before the first of them runs, since it reads a file, which no search should wait for, and asked again
        until it has told: none runs before that is known, as it may have been switched off.
        """
        self._control = control
        self._variants = tuple(variants)
        self._inline = tuple(inline)
        self._recorder = recorder
        self._texts = texts
        self._worker = Worker(self._done, self._hanging, self._placed)
        self._seen: tuple[Snapshot, Held] | None = None
        self._earlier = earlier
        self._beginning = Lock()
        self._known = Event()
        self._asking: Thread | None = None

    def _placed(self) -> bool:
        """Whether it is known where the variants run, which a file tells."""
        with self._beginning:
            if self._known.is_set():
                return True
            hashes = [variant.hash for variant in self._variants]
            found = self._earlier(hashes) if self._earlier and hashes else {}
            if found is None:
                return False
            for variant in self._variants:
                if variant.hash in found:
                    variant.goes_on(found[variant.hash])
                self._moved(variant, variant.rested() or variant.look())
            self._known.set()
        return True

    def _placed_soon(self, seconds: float) -> bool:
        """The same for a variant that the caller waits for: for this, too, but once at most, and no longer."""
        if not self._known.is_set() and (self._asking is None or not self._asking.is_alive()):
            first, self._asking = self._asking is None, Thread(target=self._ask, name="shadows before", daemon=True)
            self._asking.start()
            if first:
                self._asking.join(seconds)
        return self._known.is_set()

    def _ask(self) -> None:
        with harmless("what is known of variants could not be read"):
            self._placed()

    def search(self, query_id: str) -> Search:
        """A search that variants may see."""
        seeing = self._seeing(query_id)
        mixing = next((variant for variant in seeing if variant.mode == "interleaved"), None)
        return Search(self, query_id, [variant for variant in seeing if variant is not mixing], self._inline, mixing)

    def _seeing(self, query_id: str) -> list[RunningVariant]:
        """The variants that see a query, in the order in which they run."""
        seeing: list[RunningVariant] = []
        for variant in self._variants:
            self._moved(variant, variant.rested())
            if not sampled(query_id, variant.hash, variant.sample):
                continue
            mixed = variant.mode == "interleaved"
            known = not mixed or self._placed_soon(variant.placement.budget_ms / 1e3)
            if not known or variant.place == "off" or (variant.place == "idle" and mixed):
                variant.drop("off")
            elif not mixed and not self._worker.room():
                variant.drop("queue")
            else:
                seeing.append(variant)
        return shuffled(query_id, seeing, lambda variant: variant.hash)

    def held(
        self, job: Job, variants: Sequence[RunningVariant], snapshot: Snapshot, opened: OpenStore, question: Question
    ) -> None:
        """Has the state held that the query saw: once for all queries that saw the same one.

        What sessions were sent is written without a new snapshot, so a query of a session has a state of its own.
        """
        seen = self._seen
        known = seen[1] if seen is not None and seen[0] is snapshot and not question.session else None
        job.wait_for(variants, snapshot, opened.database, known)
        if job.held is not None and not question.session:
            self._seen = (snapshot, job.held)

    def over(self, job: Job | None) -> None:
        """A search has returned: takes the query if there is one, and tells at once who did not see it."""
        if job is not None and not self._worker.put(job):
            job.drop("queue")
            for run in job.runs:
                run.variant.drop("queue")
            job.end()
            self._forget()
        self._report_dropped()

    def named(self, query_id: str, at: float, store: str, state: int, question: Question) -> Named:
        """A query as records name it."""
        return Named(query_id, at, store, state, question if self._texts else None)

    def finish(self, seconds: float, *, leaving: bool = False) -> bool:
        """Waits until all variants have run, so many seconds at most; whether they have. See `Worker.finish`."""
        finished = self._worker.finish(seconds, leaving=leaving)
        self._report_dropped()
        if leaving and self._recorder:
            self._recorder.write()
        return finished

    def states(self) -> tuple[ShadowState, ...]:
        """How each variant fares."""
        self._ask()
        self._worker.look_after()
        return tuple(variant.state() for variant in self._variants)

    def note(self, job: Job, runs: Sequence[RunBeside]) -> None:
        """Counts the runs of a query, and records it."""
        for one in runs:
            why = one.variant.ran(one.run.spent_ns / 1e6, one.run.failure)
            self._moved(one.variant, why)
        self._record(job, runs)
        self._report_dropped()

    def _done(self, job: Job) -> None:
        self._forget()
        self.note(job, job.runs)

    def _forget(self) -> None:
        """Keeps no state in memory that nobody holds any more."""
        seen = self._seen
        if seen is not None and seen[1].ended and self._seen is seen:
            self._seen = None

    def _hanging(self, job: Job, variant: RunningVariant, step: str) -> None:
        why = variant.never_ended(step, HANGING_SECONDS)
        self._moved(variant, why)
        self._record(job, [job.failed(variant, f"TimeoutError in {step}", HANGING_SECONDS)])

    def _record(self, job: Job, runs: Sequence[RunBeside]) -> None:
        def noted(recorder: Recorder) -> None:
            seen = observation(job.named, job.before.query, job.before.control, runs)
            recorder.record(
                seen, [pipeline_record(self._control), *(pipeline_record(one.run.pipeline) for one in runs)]
            )

        self._fenced(noted)

    def _moved(self, variant: RunningVariant, why: str) -> None:
        if why:
            retreat = Retreat(self._control.hash, variant.hash, variant.place, why, time.time())
            self._fenced(lambda recorder: recorder.retreat(retreat))

    def _report_dropped(self) -> None:
        for variant in (*self._variants, *self._inline):
            with variant.guard:
                counts, variant.unreported = variant.unreported, Counter()
            for why, count in counts.items():
                dropped = Dropped(self._control.hash, variant.hash, variant.mode, why, count)
                self._fenced(partial(_told_of, dropped))

    def _fenced(self, work: Callable[[Recorder], None]) -> None:
        """Calls the recorder, if there is one. What it raises reaches nobody's answer."""
        if self._recorder is not None:
            with harmless("an observation could not be recorded"):
                work(self._recorder)


def _told_of(dropped: Dropped, recorder: Recorder) -> None:
    recorder.dropped(dropped)
