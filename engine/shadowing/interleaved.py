"""Mixes the answers of two pipelines into one list, for readers to choose from (feature P5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from speckit_memory.engine.shadowing.records import RunBeside
from speckit_memory.engine.shadowing.variant import RunningVariant
from speckit_memory.pipeline.comparing.interleaving import STEP, InterleavedRanking, draft_ranking, mix_pools
from speckit_memory.pipeline.comparing.shadow import Shadow, ShadowRequest, ShadowRun
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.describing import kind_of
from speckit_memory.pipeline.model.trace import StepRecord, Trace
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

FIRST_OF_ALL = "constitutional"
"""Memories of this tier that the control ranks on top stay there."""
TEAMS = {"control": -1, "variant": 1, "both": 0}


class LateError(BaseException):
    """The variant has used up its time. A BaseException, so that no step catches it."""


@dataclass(slots=True)
class InterleavedRunner:
    """A control whose answers are mixed with those of a variant. Has the same protocol as the runner.

    The caller waits for the variant, which is stopped between two of its steps when its budget (`budgets_ms.shadow`) or
    the deadline of the query is used up. If it is late, fails, or its rows cannot be mixed, the control's answer is
    served unchanged.
    """

    runner: Runner
    watched: Shadow
    variant: RunningVariant
    query_id: str
    before: Callable[[], ShadowRequest | None]
    ran: Callable[[RunBeside, Outcome | None], None]

    @property
    def pipeline(self) -> Pipeline:
        """The control's pipeline."""
        return self.runner.pipeline

    def run(self, query: Query, store: Store) -> Outcome:
        """Answers one query with both pipelines. Raises what the control raises."""
        outcome = self.watched.run(query, store)
        before = self.before()
        if before is None or any(record.state == "skipped" for record in outcome.trace.steps):
            self.variant.drop("late")
            return outcome
        begun, until = perf_counter(), query_ns() + int(self.variant.placement.budget_ms * 1e6)
        if query.deadline_ns is not None:
            until = min(until, query.deadline_ns)

        def pause(_step: str) -> None:
            if query_ns() > until:
                raise LateError

        together: Outcome | None = None
        teams: tuple[int, ...] = ()
        try:
            run = before.run(self.variant.runner, store, pause)
            together, teams = self._together(outcome, run, store)
        except (LateError, Exception) as error:  # any failure of the variant: serve the control's answer
            failure = "LateError" if isinstance(error, LateError) else f"{kind_of(error)} in {STEP}"
            spent_ns = int((perf_counter() - begun) * 1e9)
            run = ShadowRun(self.variant.runner.pipeline, None, (), spent_ns, spent_ns, failure)
        overhead_ms = (perf_counter() - begun) * 1e3
        self.ran(RunBeside(self.variant, run, overhead_ms, teams), together)
        return together or outcome

    def _together(self, outcome: Outcome, run: ShadowRun, store: Store) -> tuple[Outcome | None, tuple[int, ...]]:
        """The mixed answer and the team of each of its memories; None and () if there is none."""
        if run.outcome is None or run.failure or not len(outcome.pool) + len(run.outcome.pool):
            return None, ()
        control, variant = (one.pool.candidates.parents.tolist() for one in (outcome, run.outcome))
        if len({*control}) < len(control) or len({*variant}) < len(variant):
            return None, ()  # several rows of one memory: a click could not be credited to one team
        draft = draft_ranking(control, variant, self.query_id, kept=_pinned_rows(outcome, store))
        answer = self.runner.annotated(outcome.query, mix_pools(outcome.pool, run.outcome.pool, draft.ids), store)
        said = Notes(overall={"interleaved_with": {"name": run.pipeline.name, "hash": run.pipeline.hash}})
        trace = _joined(outcome.trace, answer.trace, set(answer.pool.ids.tolist()), len(draft.ids))
        whole = replace(answer, notes={STEP: said, **answer.notes}, trace=trace)
        return whole, _teams(draft, whole)


def _pinned_rows(outcome: Outcome, store: Store) -> int:
    """The number of leading rows in the control's answer that are constitutional memories."""
    tiers = store.attributes.label("tier", outcome.pool.candidates.parents)
    others = [place for place, tier in enumerate(tiers) if str(tier) != FIRST_OF_ALL]
    return min(others, default=len(outcome.pool))


def _teams(draft: InterleavedRanking, outcome: Outcome) -> tuple[int, ...]:
    team = dict(zip(draft.ids, draft.teams, strict=True))
    return tuple(TEAMS[team[memory]] for memory in outcome.pool.candidates.parents.tolist())


def _joined(control: Trace, mixing: Trace, served: set[int], rows: int) -> Trace:
    """The control's trace with the mixing step and the steps after it appended."""
    step = StepRecord("rerank", STEP, rows, rows, 0, "ran")
    # a memory that the control lost and the mixing served is no loss
    losses = (replace(loss, ids=loss.ids[~np.isin(loss.ids, list(served))]) for loss in control.losses)
    stages = {stage: control.stage_ns.get(stage, 0) + ns for stage, ns in mixing.stage_ns.items()}
    return replace(
        control,
        steps=(*control.steps, step, *mixing.steps),
        losses=(*mixing.losses, *(loss for loss in losses if len(loss.ids))),
        degraded=tuple(dict.fromkeys((*control.degraded, *mixing.degraded))),
        total_ns=control.total_ns + mixing.total_ns,
        stage_ns={**control.stage_ns, **stages},
    )
