"""The one place where a step is called: it measures, checks the deadline, and turns failures into values."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Literal, Self, TypeVar

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.composition import BoundStep, Pipeline
from speckit_memory.pipeline.describing import describe
from speckit_memory.pipeline.errors import ContractError
from speckit_memory.pipeline.interrupts import Interrupts
from speckit_memory.pipeline.model import Complexity, Grouped, Hits, Notes, Selected
from speckit_memory.pipeline.ports import Ids, Unavailable
from speckit_memory.pipeline.process_state import ProcessState
from speckit_memory.pipeline.showing import Showing
from speckit_memory.pipeline.trace import Degradation, Loss, Stage, State, StepRecord, Trace, too_late

T = TypeVar("T")
Clock = Callable[[], int]
"""A monotonic clock in nanoseconds; in service that of queries, which opening the store does not move."""


class Journal:
    """Collects what happens during one run, which it is entered for. `shown` is what the steps get to see."""

    def __init__(self, clock: Clock, deadline_ns: int | None, *, strict: bool) -> None:
        self.clock = clock
        self.deadline_ns = deadline_ns
        self.strict = strict
        self.records: list[StepRecord] = []
        self.losses: list[Loss] = []
        self.degraded: list[Degradation] = []
        self.shown = Showing()
        self._interrupts = Interrupts()
        self.started_ns = clock()

    def __enter__(self) -> Self:
        self._process = ProcessState.before_the_runs()
        self._interrupts.watch()
        return self

    def __exit__(self, *raised: object) -> None:
        self._interrupts.release()
        self._process.after_the_run()

    def call(
        self,
        stage: Stage,
        step: BoundStep[object],
        n_in: int,
        work: Callable[[], T | Unavailable],
        instead: str,
        *,
        required: bool = False,
        due: bool = False,
    ) -> T | None:
        """What the step answers, or None when it did not: unavailable, failed, or too late to start.

        A `required` step that does not answer is an error that names it. Any other is recorded as a degradation, with
        `instead` telling what serves in its place. In strict mode exceptions are raised as they are. Neither a required
        step nor one that is `due` gives way to the deadline.
        """
        if step.gives_way and not (required or due) and self._late():
            self.records.append(StepRecord(stage, step.id, n_in, n_in, 0, "skipped", "the deadline had passed"))
            return None
        begin = self.clock()
        answer, failure = self._outcome(step, work)
        spent = self.clock() - begin
        if failure is not None:
            if required:
                raise SpeckitError("E040", f"the step '{step.id}' failed: {failure}")
            self._absent(stage, step, n_in, spent, "failed", failure, instead)
            return None
        if isinstance(answer, Unavailable):
            if required:
                raise SpeckitError("E040", f"the step '{step.id}' is unavailable: {answer.reason}")
            self._absent(stage, step, n_in, spent, "unavailable", answer.reason, instead)
            return None
        self.records.append(StepRecord(stage, step.id, n_in, rows_out(answer, n_in), spent, "ran"))
        return answer

    def _outcome(self, step: BoundStep[object], work: Callable[[], T]) -> tuple[T | None, str | None]:
        """The answer of a step, or why there is none; whatever a component raises ends with its step.

        A step that has changed what it was shown has failed, whatever it answers or raises besides.
        """
        answer, raised = None, None
        try:
            answer = copy_context().run(work)
        except BaseException as error:  # SystemExit among them, which is no component's to raise
            raised = error
        if self._interrupts.users(raised):
            raise KeyboardInterrupt
        self._process.after_a_step()
        if changed := self.shown.touched():
            raised = ContractError(step.id, f"changed the {changed} that it was shown")
        if raised is None:
            return answer, None
        if self.strict:
            raise raised
        return None, describe(raised)

    def lost(self, step: str, ids: Ids) -> None:
        """Remembers rows that a step took out, for `why_not`."""
        if len(ids):
            self.losses.append(Loss(step, ids))

    def _late(self) -> bool:
        return self.deadline_ns is not None and self.clock() > self.deadline_ns

    def _absent(
        self, stage: Stage, step: BoundStep[object], n_in: int, ns: int, state: State, reason: str, instead: str
    ) -> None:
        self.records.append(StepRecord(stage, step.id, n_in, n_in, ns, state, reason))
        impact: Literal["low", "medium"] = "medium" if stage == "candidates" else "low"
        self.degraded.append(Degradation(step.id, reason, instead, impact))

    def trace(self, pipeline: Pipeline, complexity: Complexity) -> Trace:
        """The trace of the run so far, of a query of this complexity."""
        stage_ns: dict[Stage, int] = {}
        for record in self.records:
            stage_ns[record.stage] = stage_ns.get(record.stage, 0) + record.ns
        return Trace(
            pipeline=pipeline.name,
            config_hash=pipeline.hash,
            steps=tuple(self.records),
            losses=tuple(self.losses),
            # a part that failed for each variant is one loss
            degraded=(*dict.fromkeys(self.degraded), *too_late(self.records)),
            total_ns=self.clock() - self.started_ns,
            stage_ns=stage_ns,
            budget_ms=pipeline.budgets_ms[complexity],
        )


def rows_out(answer: object, n_in: int) -> int:
    """How many rows a step leaves behind."""
    match answer:
        case Hits(ids=ids):
            return len(ids)
        case Selected(keep=keep) | Notes(keep=keep) if keep is not None:
            return int(np.count_nonzero(keep))
        case Grouped(groups=groups):
            return len(np.unique(groups))
        case _:
            return n_in
