"""The variants of a pipeline that run in the serving process: interleaved, or as dark runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.recording.observations import pipeline_record
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.shadowing.dark_runs import HANGING_SECONDS, DarkRuns
from speckit_memory.engine.shadowing.records import QueryRef, RunBeside, observation
from speckit_memory.engine.shadowing.search import ShadowSearch, WatchedSearch
from speckit_memory.engine.shadowing.variant import Earlier, RunningVariant, ShadowState
from speckit_memory.memory.store.evaluation.records import DroppedQueries, PlacementChange
from speckit_memory.pipeline.comparing.shadow import ShadowRequest, ShadowRun, is_sampled, shuffle_variants
from speckit_memory.pipeline.roles.composition import Pipeline

if TYPE_CHECKING:
    pass

NOT_RECORDED = "an observation could not be recorded"
LEAVING_SECONDS = 1.5
"""How long the end of a process waits for dark runs."""


class Shadows:
    """Runs variants and passes the observations to a recorder."""

    def __init__(
        self,
        control: Pipeline,
        variants: Iterable[RunningVariant] = (),
        recorder: Recorder | None = None,
        *,
        inline: Iterable[RunningVariant] = (),
        earlier: Callable[[Iterable[str]], Mapping[str, Earlier] | None] | None = None,
    ) -> None:
        """Sets up the variants; none runs yet.

        Args:
            control: The pipeline that is served.
            variants: The dark-run and interleaved variants.
            recorder: Stores the observations, if any.
            inline: Variants whose answers each search waits for.
            earlier: Reads earlier records by the hashes of variants; None if they cannot be read now. It is called in a
                thread, since searches must not wait for a file, and again until it succeeds: no variant runs before, as
                it may have been switched off.
        """
        self._control = control
        self._variants = tuple(variants)
        self._inline = tuple(inline)
        self._recorder = recorder
        self._dark = DarkRuns(self._placed, self._note_dark, self._hanging)
        self._earlier = earlier
        # Held while the file is read. A search waits for `_known` instead, and only where it has to mix answers.
        self._beginning = Lock()
        self._known = Event()
        self._asking: Thread | None = None

    def _placed(self) -> bool:
        """Whether the places of the variants are known; reads them from the file if not."""
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
        """The same for a variant that the caller waits for: waits for the file once, at most `seconds`."""
        if not self._known.is_set() and (self._asking is None or not self._asking.is_alive()):
            first, self._asking = self._asking is None, Thread(target=self._ask, name="shadows before", daemon=True)
            self._asking.start()
            # Only the first attempt is waited for; later searches find the places known once one has succeeded.
            if first:
                self._asking.join(seconds)
        return self._known.is_set()

    def _ask(self) -> None:
        with harmless("the records of variants could not be read"):
            self._placed()

    @property
    def mixes(self) -> bool:
        """Whether answers are mixed with those of a variant."""
        return any(variant.mode == "interleaved" for variant in self._variants)

    def search(self, query_id: str) -> ShadowSearch:
        """Begins a search that variants may see."""
        seeing = self._seeing(query_id)
        mixing = next((variant for variant in seeing if variant.mode == "interleaved"), None)
        return ShadowSearch(
            self._over, query_id, [variant for variant in seeing if variant is not mixing], self._inline, mixing
        )

    def _seeing(self, query_id: str) -> list[RunningVariant]:
        """The variants that see a query, in the order in which they run."""
        seeing: list[RunningVariant] = []
        for variant in self._variants:
            self._moved(variant, variant.rested())
            if not is_sampled(query_id, variant.hash, variant.sample):
                continue
            mixed = variant.mode == "interleaved"
            known = not mixed or self._placed_soon(variant.placement.budget_ms / 1e3)
            if not known or variant.place == "off" or (variant.place == "idle" and mixed):
                variant.drop("off")
            else:
                seeing.append(variant)
        # Drawn by query id: the order can be repeated, and no variant always runs first.
        return shuffle_variants(query_id, seeing, lambda variant: variant.hash)

    def _over(self, search: WatchedSearch | None) -> None:
        """Records the runs of a search that has returned, starts its dark runs, and reports what variants missed."""
        if search and search.runs:
            self._note(search.named, search.before, search.runs)
        if search and search.dark:
            self._dark.begin(search.dark, search.named, search.before, search.opened)
        self.report()

    def finish(self, seconds: float, *, leaving: bool = False) -> bool:
        """Waits at most `seconds` for dark runs; returns whether they have ended."""
        finished = self._dark.finish(seconds, leaving=leaving)
        self.report()
        if leaving and self._recorder:
            self._recorder.write()
        return finished

    def states(self) -> tuple[ShadowState, ...]:
        """The state of each variant."""
        self._ask()
        return tuple(variant.state() for variant in self._variants)

    def _note(self, named: QueryRef, before: ShadowRequest, runs: Sequence[RunBeside]) -> None:
        """Counts the runs of a query and records them."""
        for one in runs:
            self._moved(one.variant, one.variant.ran(one.run.spent_ns / 1e6, one.run.failure))
        self._record(named, before, runs)
        self.report()

    def _note_dark(self, named: QueryRef, before: ShadowRequest, run: RunBeside) -> None:
        self._note(named, before, [run])

    def _hanging(self, named: QueryRef, before: ShadowRequest, variant: RunningVariant, step: str) -> None:
        self._moved(variant, variant.never_ended(step, HANGING_SECONDS))
        ns, failure = int(HANGING_SECONDS * 1e9), f"TimeoutError in {step}"
        run = ShadowRun(variant.runner.pipeline, None, (), ns, ns, failure)
        self._record(named, before, [RunBeside(variant, run, 0.0)])

    def _record(self, named: QueryRef, before: ShadowRequest, runs: Sequence[RunBeside]) -> None:
        with harmless(NOT_RECORDED):
            if self._recorder is not None:
                seen = observation(named, before.query, before.control, runs)
                known = [pipeline_record(self._control), *(pipeline_record(one.run.pipeline) for one in runs)]
                self._recorder.record(seen, known)

    def _moved(self, variant: RunningVariant, why: str) -> None:
        if why and self._recorder is not None:
            with harmless(NOT_RECORDED):
                self._recorder.retreat(
                    PlacementChange(self._control.hash, variant.hash, variant.place, why, time.time())
                )

    def report(self) -> None:
        """Records the queries that variants did not see."""
        for variant in (*self._variants, *self._inline):
            with variant.guard:  # swapped under the lock, so that no count is lost or reported twice
                counts, variant.unreported = variant.unreported, Counter()
            for why, count in counts.items():
                with harmless(NOT_RECORDED):
                    if self._recorder is not None:
                        self._recorder.dropped(
                            DroppedQueries(self._control.hash, variant.hash, variant.mode, why, count)
                        )
