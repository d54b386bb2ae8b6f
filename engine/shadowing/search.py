"""One search with the variants that answer it live: mixed into its answer, shown next to it, or as dark runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from speckit_memory.engine.answers.request import RecordedRequest
from speckit_memory.engine.answers.result_parts import PipelineIdentity
from speckit_memory.engine.answers.results import SearchResult, ShadowAnswer
from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.recording.observations import known_folder
from speckit_memory.engine.shadowing.interleaved import InterleavedRunner
from speckit_memory.engine.shadowing.records import QueryRef, RunBeside
from speckit_memory.engine.shadowing.variant import RunningVariant, Why
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.pipeline.comparing.shadow import Shadow, ShadowRequest, shuffle_variants
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore

Shown = Callable[[Outcome, Pipeline], SearchResult]
"""Turns an outcome into the answer for the caller."""


@dataclass(frozen=True, slots=True)
class WatchedSearch:
    """A search that has returned: its query, the control's run, runs of variants during it, and those to run now."""

    named: QueryRef
    before: ShadowRequest
    runs: Sequence[RunBeside]
    dark: Sequence[RunningVariant]
    opened: OpenStore


class ShadowSearch:
    """The variants' side of one call of `Memory.search`."""

    def __init__(
        self,
        over: Callable[[WatchedSearch | None], None],
        query_id: str,
        dark: Sequence[RunningVariant] = (),
        inline: Sequence[RunningVariant] = (),
        mixing: RunningVariant | None = None,
    ) -> None:
        """Sets the variants that see the query.

        Args:
            over: Receives the search once it is over; None if no variant saw it.
            query_id: Identifies the query.
            dark: Variants to run after the reply.
            inline: Variants to run before the reply; their answers are attached to it.
            mixing: The variant to mix the answer with, if any.
        """
        self._over = over
        self._id = query_id
        self._dark = dark
        self._inline = inline
        self._mixing = mixing
        self._elsewhere: Why | None = None
        self._runs: list[RunBeside] = []
        self._before: ShadowRequest | None = None
        self._answered: tuple[QueryRef, OpenStore] | None = None

    def through(self, runner: Runner) -> InterleavedRunner | Shadow | Runner:
        """The control, wrapped to capture its run if a variant sees the query."""
        if self._mixing is not None:
            watched = Shadow(runner, self._keep)
            return InterleavedRunner(runner, watched, self._mixing, self._id, lambda: self._before, self._keep_mixed)
        return Shadow(runner, self._keep) if self._dark or self._inline else runner

    def elsewhere(self, why: Why) -> None:
        """Notes that a pipeline other than the control answers, so that no variant sees the query."""
        self._elsewhere = why

    def _keep(self, before: ShadowRequest) -> None:
        self._before = before

    def _keep_mixed(self, run: RunBeside, together: Outcome | None) -> None:
        self._runs.append(run)
        if together is not None and self._before is not None:
            control = replace(self._before.control, outcome=together)
            self._before = replace(self._before, control=control)

    def beside(self, result: SearchResult, store: Store, shown: Shown) -> SearchResult:
        """Attaches the answers of the inline variants. Call it inside the read that made the answer."""
        if self._before is None:
            return result
        answers: dict[str, ShadowAnswer] = {}
        for variant in shuffle_variants(self._id, self._inline, lambda one: one.name):
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
        return replace(result, beside=tuple(answers[one.name] for one in self._inline))

    def answered(self, snapshot: Snapshot, opened: OpenStore, asked: RecordedRequest) -> None:
        """Keeps what records need of the query. Call it at the end of the read, even after a failure. Never raises."""
        if self._before is None or self._inline:
            return  # a comparison by hand: its queries are chosen and would bias the sample
        with harmless("an answer could not be recorded for the variants"):
            # the clock, not the query's `now`, which a caller may have set
            kept = asked if opened.recorder.keeps_texts else None
            folder = known_folder(self._before.query, snapshot)
            self._answered = QueryRef(self._id, time.time(), opened.place, snapshot.sequence, kept, folder), opened

    def again(self) -> None:
        """Resets the object when the search is repeated on another store."""
        self._before = self._answered = self._elsewhere = None
        self._runs = []

    def over(self) -> None:
        """Hands the finished search on, even if the search raised. Never raises."""
        with harmless("an answer could not be handed to the variants"):
            if self._elsewhere and self._before is None:
                for variant in (*self._dark, *([self._mixing] if self._mixing else ())):
                    variant.drop(self._elsewhere)
            seen: WatchedSearch | None = None
            if self._before is not None and self._answered is not None:
                named, opened = self._answered
                seen = WatchedSearch(named, self._before, self._runs, self._dark, opened)
            self._over(seen)
