"""Runs a pipeline: candidates → fusion → rerank → annotate. The whole story, top to bottom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from config.clock import query_ns
from pipeline.apply import fused, reranked, signalled
from pipeline.boundary import Clock, Journal
from pipeline.checks import check_column, check_fused, check_notes, check_reranking
from pipeline.composition import BoundStep, Pipeline
from pipeline.contracts import Annotator, Fuser, Reranker, Signal, SignalParams
from pipeline.errors import StageInvariantError
from pipeline.gathering import gather, understand
from pipeline.model import Candidates, Fused, Notes, Pool, Query, Reranking
from pipeline.ports import Column, Store, Unavailable
from pipeline.scales import Scale
from pipeline.sealing import Seal, narrow
from pipeline.trace import Trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one query.

    `pool` holds the served rows in order, with every score column; `notes` what each annotate step said.
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

    def run(self, query: Query, store: Store) -> Outcome:
        """One query, end to end. Raises SpeckitError when nothing could answer it."""
        journal = Journal(self._clock, query.deadline_ns, strict=self.strict)
        query = understand(self.pipeline.candidates, query, store, journal)
        query, candidates = gather(self.pipeline.candidates, query, store, journal)
        pool = self._fusion(query, candidates, store, journal)
        pool = self._rerank(query, pool, store, journal)
        pool, notes, room = self._annotate(query, pool, store, journal)
        served = pool.take(np.arange(min(room, len(pool))))
        journal.lost("limit", pool.ids[room:])
        return Outcome(query, served, notes, journal.trace(self.pipeline, query.plan.complexity))

    def _fusion(self, query: Query, candidates: Candidates, store: Store, journal: Journal) -> Pool:
        step = self.pipeline.fusion.fuser
        work = partial(self._fused, step, query, candidates)
        answer = journal.call("fusion", step, len(candidates), work, "nothing", required=True)
        assert answer is not None  # a required step answers or raises
        pool = fused(step.id, _declared(step), candidates, answer)
        added: dict[str, Column] = {}
        for signal in self.pipeline.fusion.signals:
            assert isinstance(signal.params, SignalParams)  # the registry admits no other
            evidence = partial(self._evidence, signal, query, pool, store)
            column = journal.call(
                "fusion", signal, len(pool), evidence, "the score without this signal", required=not signal.optional
            )
            if column is not None:
                used = added.get(signal.params.cap_group, np.zeros(len(pool)))
                pool, column = signalled(signal.id, signal.component.combine, signal.params, pool, column, used)
                added[signal.params.cap_group] = used + column if signal.params.cap_group else used
        return pool.take(pool.order()) if self.pipeline.fusion.signals else pool

    def _rerank(self, query: Query, pool: Pool, store: Store, journal: Journal) -> Pool:
        for step in self.pipeline.rerank:
            scale = step.gives or (pool.scale.widened if step.about.widens else pool.scale)
            work = partial(self._reranking, step, scale, query, pool, store)
            answer = journal.call(
                "rerank", step, len(pool), work, "the order before this step", required=not step.optional
            )
            if answer is not None:
                before, pool = pool, reranked(step.id, scale, pool, answer)
                if len(pool) < len(before):
                    journal.lost(step.id, np.setdiff1d(before.candidates.parents, pool.candidates.parents))
        return pool

    def _annotate(self, query: Query, pool: Pool, store: Store, journal: Journal) -> tuple[Pool, dict[str, Notes], int]:
        """The rows that stay, what each step said, and for how many rows there is room within the query's limit."""
        notes: dict[str, Notes] = {}
        room = query.limit
        sealed = Seal.of(pool)
        for step in self.pipeline.annotate:
            work = partial(self._noted, step, query, pool, sealed, store)
            answer = journal.call("annotate", step, len(pool), work, "the sealed ranking without this step's notes")
            if answer is not None:
                notes[step.id] = answer
                if answer.keep is not None and not answer.keep.all():
                    journal.lost(step.id, pool.ids[~answer.keep])
                    room -= int(np.count_nonzero(~answer.keep[:room])) if answer.in_place else 0
                    pool = narrow(pool, answer.keep)
                    sealed = Seal.of(pool)
            if sealed.broken():
                sealed = Seal.of(pool)
        return pool, notes, room

    def _fused(self, step: BoundStep[Fuser], query: Query, candidates: Candidates) -> Fused | Unavailable:
        return check_fused(step.component.fuse(query, candidates), len(candidates), _declared(step), step.id)

    def _evidence(self, step: BoundStep[Signal], query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        return check_column(step.component.evidence(query, pool, store), len(pool), step.id)

    def _reranking(
        self, step: BoundStep[Reranker], scale: Scale, query: Query, pool: Pool, store: Store
    ) -> Reranking | Unavailable:
        return check_reranking(step.component.rerank(query, pool, store), pool, scale, step.id)

    def _noted(
        self, step: BoundStep[Annotator], query: Query, pool: Pool, sealed: Seal, store: Store
    ) -> Notes | Unavailable:
        """Shows a sealed copy to the annotator; what is served comes from the pool, which no annotator ever sees."""
        try:
            answer = step.component.annotate(query, sealed.ranking, store)
        finally:
            if sealed.broken():
                raise StageInvariantError(step.id, "changed the scores or the order of the sealed ranking")
        return check_notes(answer, pool, step.id)


def _declared(step: BoundStep[Fuser]) -> Scale:
    assert step.gives is not None  # the registry admits no fuser without a scale
    return step.gives
