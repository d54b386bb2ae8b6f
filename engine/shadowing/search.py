"""One search on its way: what it was answered is handed to the variants once it has been."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from speckit_memory.engine.observed import known_folder
from speckit_memory.engine.questions import Question
from speckit_memory.engine.result_parts import PipelineIdentity
from speckit_memory.engine.results import SearchResult, ShadowAnswer
from speckit_memory.engine.shadowing.harmless import harmless
from speckit_memory.engine.shadowing.interleaved import Interleaving
from speckit_memory.engine.shadowing.job import Job
from speckit_memory.engine.shadowing.records import Named, RunBeside
from speckit_memory.engine.shadowing.variant import RunningVariant, Why
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.pipeline.composition import Pipeline
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.runner import Outcome, Runner
from speckit_memory.pipeline.shadow import Beside, Shadow, shuffled

if TYPE_CHECKING:
    from speckit_memory.engine.assembly import OpenStore

LOGGER = logging.getLogger(__name__)

Shown = Callable[[Outcome, Pipeline], SearchResult]
"""Makes the answer of an outcome."""


class Watcher(Protocol):
    """Who wants to know of searches."""

    def named(self, query_id: str, at: float, store: str, state: int, question: Question) -> Named:
        """A query as records name it."""

    def held(
        self, job: Job, variants: Sequence[RunningVariant], snapshot: Snapshot, opened: OpenStore, question: Question
    ) -> None:
        """Has the state held that the query saw."""

    def over(self, job: Job | None) -> None:
        """A search has returned, with this query if it was answered and is to be noted."""


class Search:
    """Made for one call of `Memory.search`."""

    def __init__(
        self,
        watcher: Watcher,
        query_id: str,
        variants: Sequence[RunningVariant],
        inline: Sequence[RunningVariant],
        mixing: RunningVariant | None = None,
    ) -> None:
        """`variants` run after the reply, `inline` ones before it, as parts of the answer; that is mixed with the one
        of `mixing`."""
        self._watcher = watcher
        self._id = query_id
        self._variants = variants
        self._inline = inline
        self._mixing = mixing
        self._mixed = False
        self._elsewhere: Why | None = None
        self._runs: list[RunBeside] = []
        self._before: Beside | None = None
        self._job: Job | None = None

    def through(self, runner: Runner) -> Interleaving | Shadow | Runner:
        """The control, which is watched if a variant sees the query."""
        if self._mixing is not None:
            watched = Shadow(runner, self._keep)
            return Interleaving(runner, watched, self._mixing, self._id, lambda: self._before, self._keep_mixed)
        return Shadow(runner, self._keep) if self._variants or self._inline else runner

    def elsewhere(self, why: Why) -> None:
        """Another pipeline than the control answers, so that no variant sees the query."""
        self._elsewhere = why

    def _keep(self, before: Beside) -> None:
        self._before = before

    def _keep_mixed(self, run: RunBeside, together: Outcome | None) -> None:
        self._runs.append(run)
        if together is not None and self._before is not None:
            self._mixed = True
            control = replace(self._before.control, outcome=together)
            self._before = replace(self._before, control=control)

    def beside(self, result: SearchResult, store: Store, shown: Shown) -> SearchResult:
        """The answer with those of the variants that it waits for. Called inside of the read that made it."""
        if self._before is None:
            return result
        answers: dict[str, ShadowAnswer] = {}
        for variant in shuffled(self._id, self._inline, lambda one: one.name):
            run = self._before.run(variant.runner, store)
            pipeline = variant.runner.pipeline
            answers[variant.name] = ShadowAnswer(
                variant.name,
                PipelineIdentity(pipeline.name, pipeline.hash),
                shown(run.outcome, pipeline) if run.outcome else None,
                run.failure,
                run.parted_at,
                round(run.total_ns / 1e6, 3),
                round(run.spent_ns / 1e6, 3),
            )
        return replace(result, beside=tuple(answers[one.name] for one in self._inline), watched=not self._inline)

    def answered(self, snapshot: Snapshot, opened: OpenStore, question: Question) -> None:
        """The answer is made, or could not be. Called inside of the read that made it, which ends with this.

        Raises nothing, so that nothing takes the place of the answer.
        """
        if self._before is None or self._inline:
            return  # who asks by hand what others answer chooses the queries: they are no sample of what is asked
        try:
            self._hand_on(self._before, snapshot, opened, question)
        except Exception as error:
            LOGGER.warning("an answer could not be handed to the variants", exc_info=error)
            seen = self._job.left if self._job else ()
            unheard = () if self._mixed else self._variants
            for variant in (*unheard, *(() if self._job else (run.variant for run in self._runs))):
                if variant not in seen:
                    variant.drop("state")

    def _hand_on(self, before: Beside, snapshot: Snapshot, opened: OpenStore, question: Question) -> None:
        begun = perf_counter()
        # the question's own time may be a made-up one
        named = self._watcher.named(self._id, time.time(), opened.place, snapshot.sequence, question)
        named = replace(named, folder=known_folder(before.query, snapshot))
        self._job = Job(named, before, self._runs)
        if self._mixed:  # what was served is the answer of no pipeline that could be compared
            for variant in self._variants:
                variant.drop("mixed")
        elif self._variants:
            self._watcher.held(self._job, self._variants, snapshot, opened, question)
        self._job.handing_ms = (perf_counter() - begun) * 1e3

    def again(self) -> None:
        """The search is made once more, over another store."""
        if self._job:
            self._job.drop("state")
            with harmless("the state of a query could not be let go"):
                self._job.end()
        self._before = self._job = self._elsewhere = None
        self._runs, self._mixed = [], False

    def over(self) -> None:
        """The search has returned, or raised. Nothing takes the place of that."""
        with harmless("an answer could not be handed to the variants"):
            if self._elsewhere and self._before is None:
                for variant in (*self._variants, *([self._mixing] if self._mixing else ())):
                    variant.drop(self._elsewhere)
            self._watcher.over(self._job)
