"""Runs a pipeline: candidates → fusion → rerank → annotate. The complete sequence, top to bottom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from speckit_memory.pipeline.guards.checks import (
    check_column,
    check_fused,
    check_notes,
    check_reranking,
    check_score,
)
from speckit_memory.pipeline.guards.sealing import Seal, narrow
from speckit_memory.pipeline.model.columns import Candidates, Fused, Notes, Pool, Query, Reranking
from speckit_memory.pipeline.model.errors import StageInvariantError
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.trace import Trace
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.roles.contracts import Annotator, Fuser, Reranker, Signal, SignalParams
from speckit_memory.pipeline.running.apply import apply_fusion, apply_rerank, apply_signal, in_total_order
from speckit_memory.pipeline.running.gathering import gather, understand
from speckit_memory.pipeline.running.journal import BeforeStep, Clock, StepRunner
from speckit_memory.pipeline.running.step_memo import Configurations, MemoRun
from speckit_memory.pipeline.running.view import StoreView


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one query.

    `pool` holds the returned rows in order, with every score column; `notes` the answers of the annotate steps.
    """

    query: Query
    pool: Pool
    notes: Mapping[str, Notes]
    trace: Trace


class Runner:
    """Executes one pipeline. Holds no state between queries and may be shared by threads.

    In `strict` mode (tests) failures of steps are raised; in service they degrade the answer, which says so.
    """

    def __init__(self, pipeline: Pipeline, *, strict: bool = False, clock: Clock = query_ns) -> None:
        self.pipeline = pipeline
        self.strict = strict
        self._clock = clock
        self.configurations = Configurations()

    def run(self, query: Query, store: Store) -> Outcome:
        """Answers one query, end to end. Raises SpeckitError if no step could answer it."""
        return self.noted(query, store, self.journal(query))

    def journal(self, query: Query, memo: MemoRun | None = None, pause: BeforeStep | None = None) -> StepRunner:
        """The recorder of a run; see `StepRunner` for the arguments."""
        return StepRunner(self._clock, query.deadline_ns, strict=self.strict, memo=memo, pause=pause)

    def noted(self, query: Query, store: Store, journal: StepRunner) -> Outcome:
        """The same as `run`, with a given journal, which is also available if the run fails."""
        store = StoreView(store)
        query = understand(self.pipeline.candidates, query, store, journal)
        query, candidates = gather(self.pipeline.candidates, query, store, journal)
        pool = self._fusion(query, candidates, store, journal)
        pool = self._rerank(query, pool, store, journal)
        return self._sealed(query, pool, store, journal)

    def annotated(self, query: Query, pool: Pool, store: Store) -> Outcome:
        """Applies only the annotate stage of this pipeline to a ranking made elsewhere.

        The trace covers this stage alone.
        """
        return self._sealed(query, pool, StoreView(store), self.journal(query))

    def _sealed(self, query: Query, pool: Pool, store: Store, journal: StepRunner) -> Outcome:
        pool, notes = self._annotate(query, pool, store, journal)
        # The limit applies last, so that annotators see all rows.
        served = pool.take(np.arange(min(query.limit, len(pool))))
        journal.lost("limit", pool.ids[query.limit :])
        return Outcome(query, served, notes, journal.trace(self.pipeline, query.plan.complexity))

    def _fusion(self, query: Query, candidates: Candidates, store: Store, journal: StepRunner) -> Pool:
        step = self.pipeline.fusion.fuser
        work = partial(self._fused, step, query, candidates)
        answer = journal.call("fusion", step, len(candidates), work, "nothing", required=True)
        assert answer is not None  # a required step answers or raises
        pool = apply_fusion(step.id, _declared(step), candidates, answer)
        journal.reached(step, None, pool)
        added: dict[str, Column] = {}
        for signal in self.pipeline.fusion.signals:
            assert isinstance(signal.params, SignalParams)  # the registry accepts no other class
            group = signal.params.cap_group
            # What the signals of the same cap group have added so far, float64[rows].
            used = added.get(group, np.zeros(len(pool)))
            evidence = partial(self._evidence, signal, signal.params, query, pool, used, store)
            after = journal.call(
                "fusion", signal, len(pool), evidence, "the score without this signal", required=not signal.optional
            )
            before = pool
            if after is not None:
                pool, column = after
                added[group] = used + column if group else used
            journal.reached(signal, before, pool)
        # Signals do not reorder the pool one by one: it is sorted once, after the last of them.
        return in_total_order(pool) if self.pipeline.fusion.signals else pool

    def _rerank(self, query: Query, pool: Pool, store: Store, journal: StepRunner) -> Pool:
        for step in self.pipeline.rerank:
            scale = step.gives or (pool.scale.widened if step.about.widens else pool.scale)
            work = partial(self._reranking, step, scale, query, pool, store)
            answer = journal.call(
                "rerank", step, len(pool), work, "the order before this step", required=not step.optional
            )
            before = pool
            if answer is not None:
                pool = apply_rerank(step.id, scale, pool, answer)
                if len(pool) < len(before):
                    journal.lost(step.id, np.setdiff1d(before.candidates.parents, pool.candidates.parents))
            journal.reached(step, before, pool)
        return pool

    def _annotate(self, query: Query, pool: Pool, store: Store, journal: StepRunner) -> tuple[Pool, dict[str, Notes]]:
        """The rows that remain, and the answer of each step."""
        notes: dict[str, Notes] = {}
        sealed = Seal.of(pool)
        for step in self.pipeline.annotate:
            work = partial(self._noted, step, query, pool, sealed, store)
            answer = journal.call("annotate", step, len(pool), work, "the sealed ranking without this step's notes")
            before = pool
            if answer is not None:
                notes[step.id] = answer
                if answer.keep is not None and not answer.keep.all():
                    journal.lost(step.id, pool.ids[~answer.keep])
                    pool = narrow(pool, answer.keep)
                    sealed = Seal.of(pool)
            # A step that broke the seal has failed; later steps get a fresh copy.
            elif sealed.broken():
                sealed = Seal.of(pool)
            journal.reached(step, (before, None), (pool, answer))
        return pool, notes

    def _fused(self, step: BoundStep[Fuser], query: Query, candidates: Candidates) -> Fused | Unavailable:
        answer = step.component.fuse(query, candidates)
        return check_fused(answer, len(candidates), _declared(step), step.id)

    def _evidence(
        self,
        step: BoundStep[Signal],
        params: SignalParams,
        query: Query,
        pool: Pool,
        used: Column,
        store: Store,
    ) -> tuple[Pool, Column] | Unavailable:
        """The pool with the signal, and the column that it added within its bounds."""
        answer = step.component.evidence(query, pool, store)
        column = check_column(answer, len(pool), step.id)
        if isinstance(column, Unavailable):
            return column
        after, column = apply_signal(step.id, step.component.combine, params, pool, column, used)
        check_score(after.score, step.id)
        return after, column

    def _reranking(
        self, step: BoundStep[Reranker], scale: Scale, query: Query, pool: Pool, store: Store
    ) -> Reranking | Unavailable:
        answer = step.component.rerank(query, pool, store)
        return check_reranking(answer, pool, scale, step.id)

    def _noted(
        self, step: BoundStep[Annotator], query: Query, pool: Pool, sealed: Seal, store: Store
    ) -> Notes | Unavailable:
        """Gives the annotator a sealed copy; the returned rows come from the pool, which no annotator ever sees."""
        try:
            answer = step.component.annotate(query, sealed.ranking, store)
        finally:
            if sealed.broken():
                raise StageInvariantError(step.id, "changed the scores or the order of the sealed ranking")
        return check_notes(answer, pool, query.anchors, step.id)


def _declared(step: BoundStep[Fuser]) -> Scale:
    assert step.gives is not None  # the registry accepts no fuser without a scale
    return step.gives
