"""Runs the steps: measures them, checks the deadline, and turns failures into values. No step runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.columns import Complexity, Grouped, Hits, Notes, Plan, Selected
from speckit_memory.pipeline.model.describing import describe, kind_of
from speckit_memory.pipeline.model.trace import Degradation, Loss, Stage, State, StepRecord, Trace, too_late
from speckit_memory.pipeline.ports import Ids, Unavailable
from speckit_memory.pipeline.process.cancellation import WithdrawnError, require_wanted
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.running.step_memo import MemoRun

T = TypeVar("T")
Clock = Callable[[], int]
"""A monotonic clock in nanoseconds; in service the clock of queries, which excludes the time to open the store."""

BeforeStep = Callable[[str], None]
"""Called with the id of a step before it runs; an exception it raises ends the run."""


class StepRunner:
    """Records one run."""

    def __init__(
        self,
        clock: Clock,
        deadline_ns: int | None,
        *,
        strict: bool,
        memo: MemoRun | None = None,
        pause: BeforeStep | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            clock: Monotonic clock in nanoseconds.
            deadline_ns: Reading of the clock after which costly and optional steps are skipped; None for no deadline.
            strict: Raise exceptions of components instead of recording them.
            memo: Records the answers of the steps, and has those of earlier runs with the same input.
            pause: Called before each step that runs.
        """
        self.clock = clock
        self.deadline_ns = deadline_ns
        self.strict = strict
        self.records: list[StepRecord] = []
        self.losses: list[Loss] = []
        self.degraded: list[Degradation] = []
        self.failures: list[tuple[str, str]] = []
        """The failed step and the kind of its error, for each failure."""
        self._memo = memo
        self._pause = pause
        self.started_ns = clock()

    @property
    def shared_ns(self) -> int:
        """The nanoseconds that reused answers took in the run that computed them."""
        return self._memo.shared_ns if self._memo else 0

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
        """The answer of a step, or None if it is unavailable, failed, or started too late.

        Exceptions of a step are recorded as degradations; in strict mode they are raised.

        Args:
            stage: The stage of the step.
            step: The step to run.
            n_in: Number of rows before the step.
            work: Runs the component.
            instead: Text for the degradation: what is used in place of the answer.
            required: Raise an error if the step does not answer. Ignores the deadline.
            due: Run the step even after the deadline.
            branch: Identifies one of several concurrent calls with the same input; call `join()` when all have
                finished.
            fits: Whether a reused answer of another pipeline's step is valid for this pipeline.

        Raises:
            WithdrawnError: If the query has been withdrawn.
            SpeckitError: E040 if a required step does not answer.
        """
        require_wanted()
        # before the deadline is checked: an answer that is reused takes no time
        kept = self._memo.known(step, branch, fits) if self._memo else None
        if kept:
            taken: T = kept.answer
            self.records.append(replace(kept.record, shared=True))
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
        if self._memo:
            self._memo.ran(step, branch, answer, record)
        return answer

    def join(self) -> None:
        """Continues from the combined answers of all branches since the last join."""
        if self._memo:
            self._memo.join()

    def understood(self, plan: Plan) -> None:
        """Marks the plan as complete."""
        if self._memo:
            self._memo.understood(plan)

    def reached(self, step: BoundStep[object], before: object, after: object) -> None:
        """Records the values before and after a step, whether or not the step answered."""
        if self._memo:
            self._memo.reached.append((step.id, before, after))

    def _outcome(self, step: BoundStep[object], work: Callable[[], T]) -> tuple[T | None, str | None]:
        """The answer of a step, or the reason why there is none. The one boundary that failures do not pass."""
        try:
            return work(), None
        except (KeyboardInterrupt, WithdrawnError):  # of the user and of the caller: they end the search
            raise
        except BaseException as error:  # including SystemExit, which a component must not raise
            self.failures.append((step.id, kind_of(error)))
            if self.strict:
                raise
            return None, describe(error)

    def lost(self, step: str, ids: Ids) -> None:
        """Records rows that a step removed, for `why_not`."""
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
        """The trace of the run so far; `complexity` selects the time budget."""
        stage_ns: dict[Stage, int] = {}
        for record in self.records:
            stage_ns[record.stage] = stage_ns.get(record.stage, 0) + record.ns
        return Trace(
            pipeline=pipeline.name,
            config_hash=pipeline.hash,
            steps=tuple(self.records),
            losses=tuple(self.losses),
            # a failure that is the same for every variant is recorded once
            degraded=(*dict.fromkeys(self.degraded), *too_late(self.records)),
            total_ns=self.clock() - self.started_ns + self.shared_ns,
            stage_ns=stage_ns,
            budget_ms=pipeline.budgets_ms[complexity],
        )


def rows_out(answer: object, n_in: int) -> int:
    """The number of rows after a step."""
    match answer:
        case Hits(ids=ids):
            return len(ids)
        case Selected(keep=keep) | Notes(keep=keep) if keep is not None:
            return int(np.count_nonzero(keep))
        case Grouped(groups=groups):
            return len(np.unique(groups))
        case _:
            return n_in
