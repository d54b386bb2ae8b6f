"""The one place where a step is called: it measures, checks the deadline, and turns failures into values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import copy_context
from dataclasses import replace
from typing import Literal, Self, TypeVar

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.guards.showing import Showing
from speckit_memory.pipeline.model.columns import Complexity, Grouped, Hits, Notes, Plan, Selected
from speckit_memory.pipeline.model.describing import describe, kind_of
from speckit_memory.pipeline.model.errors import ContractError
from speckit_memory.pipeline.model.trace import Degradation, Loss, Stage, State, StepRecord, Trace, too_late
from speckit_memory.pipeline.ports import Ids, Unavailable
from speckit_memory.pipeline.process.cancellation import require_wanted
from speckit_memory.pipeline.process.interrupts import Interrupts
from speckit_memory.pipeline.process.process_state import ProcessState
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.running.step_memo import START, Answers, Lineage

T = TypeVar("T")
Clock = Callable[[], int]
"""A monotonic clock in nanoseconds; in service that of queries, which opening the store does not move."""

Pause = Callable[[str], None]
"""Called with the id of a step before it runs; what it raises ends the run."""


class Journal:
    """Collects what happens during one run, which it is entered for. `shown` is what the steps get to see."""

    def __init__(
        self,
        clock: Clock,
        deadline_ns: int | None,
        *,
        strict: bool,
        answers: Answers | None = None,
        pause: Pause | None = None,
    ) -> None:
        """`answers` keeps what the steps answer, or has what they answered in an earlier run, which are then not asked
        again. `pause` is called before each step that runs."""
        self.clock = clock
        self.deadline_ns = deadline_ns
        self.strict = strict
        self.records: list[StepRecord] = []
        self.losses: list[Loss] = []
        self.degraded: list[Degradation] = []
        self.failures: list[tuple[str, str]] = []
        """The step of each failure, and the kind of its error."""
        self.answers = answers
        self.shown = Showing()
        self._here: Lineage = START
        self._branches: list[Lineage] = []
        self._pause = pause
        self._interrupts = Interrupts()
        self.started_ns = clock()

    @property
    def shared_ns(self) -> int:
        """What the steps took whose answers were taken from another run."""
        return self.answers.shared_ns if self.answers else 0

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
        branch: Hashable = None,
        fits: Callable[[T], bool] | None = None,
    ) -> T | None:
        """What the step answers, or None when it did not: unavailable, failed, or too late to start.

        A `required` step that does not answer is an error that names it. Any other is recorded as a degradation, with
        `instead` telling what serves in its place. In strict mode exceptions are raised as they are. Neither a required
        step nor one that is `due` gives way to the deadline.

        Calls that are asked the same beside one another name their `branch`, and `join` follows them. `fits` tells
        whether the answer of another pipeline's step is one for this pipeline. A question that was taken back ends
        here, by `WithdrawnError`.
        """
        require_wanted()
        kept = self.answers.known(self._here, step, branch) if self.answers else None
        if self.answers and kept and (fits is None or fits(kept.answer)):
            taken: T = kept.answer
            self.records.append(replace(kept.record, shared=True))
            self._go_on(self.answers.take(kept), branch)
            return taken
        if step.gives_way and not (required or due) and self._late():
            self.records.append(StepRecord(stage, step.id, n_in, n_in, 0, "skipped", "the deadline had passed"))
            return None
        if self._pause is not None:
            self._pause(step.id)
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
        record = StepRecord(stage, step.id, n_in, rows_out(answer, n_in), spent, "ran")
        self.records.append(record)
        if self.answers:
            self._go_on(self.answers.ran(self._here, step, branch, answer, record), branch)
        return answer

    def join(self) -> None:
        """The answers of the branches since the last join are put together."""
        if self.answers:
            self._here = self.answers.join(self._here, tuple(self._branches))
            self._branches.clear()

    def understood(self, plan: Plan) -> None:
        """The plan is made."""
        if self.answers:
            self._here = self.answers.understood(self._here, plan)

    def reached(self, step: BoundStep[object], before: object, after: object) -> None:
        """Remembers what a step, whether or not it answered, has made of what there was."""
        if self.answers:
            self.answers.reached.append((step.id, before, after))

    def _go_on(self, lineage: Lineage, branch: Hashable) -> None:
        if branch is None:
            self._here = lineage
        else:
            self._branches.append(lineage)

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
        self.failures.append((step.id, kind_of(raised)))
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
            total_ns=self.clock() - self.started_ns + self.shared_ns,
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
