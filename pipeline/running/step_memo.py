"""Answers of the steps of a run, kept so that another run over the same state of the store can reuse them.

Components are pure functions of their parameters, the query with its plan, the rows so far, and the store. So the
inputs of a step need not be compared: they are equal if the same steps with the same parameters led to them. A number,
the lineage, identifies that history; two runs with the same lineage are in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.model.trace import StepRecord
from speckit_memory.pipeline.roles.composition import BoundStep

Lineage = int
START: Lineage = 0
"""The query before any step."""
Configuration = tuple[str, str, str, str]
Reached = tuple[str, object, object]
"""A step with the values before and after it, for `pipeline.comparing.divergence`."""


def configuration(step: BoundStep[object]) -> Configuration:
    """Everything except its inputs that determines a step's answer. Steps with equal configurations are equivalent."""
    kind = type(step.component)
    return step.use, step.id, step.params.model_dump_json(), f"{kind.__module__}.{kind.__qualname__} {step.gives}"


class Configurations:
    """Cache of the configurations of one pipeline's steps."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[BoundStep[object], Configuration]] = {}

    def of(self, step: BoundStep[object]) -> Configuration:
        """The configuration of a step."""
        found = self._known.get(id(step))
        if found is None:
            found = self._known[id(step)] = step, configuration(step)  # keeping the step keeps its id unique
        return found[1]


@dataclass(frozen=True, slots=True)
class MemoEntry:
    """The answer of a step that ran, and its record."""

    answer: Any
    record: StepRecord


@dataclass(slots=True)
class StepMemo:
    """The answers of runs over one state of the store: the frame's own values, which no component modifies."""

    lineages: dict[Hashable, Lineage] = field(default_factory=dict)
    """The lineage after a lineage and what followed it: a step's configuration and branch, or joined branches."""
    answers: dict[Lineage, MemoEntry] = field(default_factory=dict)
    """Answers by the lineage after their step. A step that failed, was unavailable or came too late has none."""
    plans: list[tuple[Plan, Lineage]] = field(default_factory=list)

    def lineage(self, here: Lineage, then: Hashable) -> Lineage:
        """The lineage after `here` and what followed it."""
        return self.lineages.setdefault((here, then), len(self.lineages) + 1)


class MemoRun:
    """One run that records its answers in a memo, and takes those that an earlier run recorded there."""

    __slots__ = ("_branches", "_configurations", "_here", "_memo", "reached", "shared_ns")

    def __init__(self, memo: StepMemo, configurations: Configurations) -> None:
        """`configurations` is the cache of the pipeline that runs."""
        self._memo = memo
        self._configurations = configurations
        self._here = START
        self._branches: list[Lineage] = []
        self.shared_ns = 0
        """The nanoseconds that reused answers took originally."""
        self.reached: list[Reached] = []

    def known(self, step: BoundStep[object], branch: Hashable, fits: Callable[[Any], bool] | None) -> MemoEntry | None:
        """The answer that a run recorded for this step in this state, which the run goes on from.

        Args:
            step: The next step.
            branch: Identifies one of several concurrent calls with the same input; None outside branches.
            fits: Whether an answer is valid for the running pipeline; None if every one is.
        """
        after = self._after(step, branch)
        kept = self._memo.answers.get(after)
        if kept is None or not (fits is None or fits(kept.answer)):
            return None
        self.shared_ns += kept.record.ns
        self._go_on(after, branch)
        return kept

    def ran(self, step: BoundStep[object], branch: Hashable, answer: object, record: StepRecord) -> None:
        """Records the answer of a step of this run.

        Args:
            step: The step that ran.
            branch: As for `known`.
            answer: Its checked answer.
            record: Its trace record.
        """
        after = self._after(step, branch)
        self._memo.answers[after] = MemoEntry(answer, record)
        self._go_on(after, branch)

    def join(self) -> None:
        """Continues from the combined answers of all branches since the last join."""
        self._here = self._memo.lineage(self._here, tuple(self._branches))
        self._branches.clear()

    def understood(self, plan: Plan) -> None:
        """Continues from the plan, which is complete: later steps depend on nothing else of the history."""
        for known, lineage in self._memo.plans:
            if known == plan:
                self._here = lineage
                return
        self._memo.plans.append((plan, self._here))

    def _after(self, step: BoundStep[object], branch: Hashable) -> Lineage:
        return self._memo.lineage(self._here, (self._configurations.of(step), branch))

    def _go_on(self, lineage: Lineage, branch: Hashable) -> None:
        if branch is None:
            self._here = lineage
        else:
            self._branches.append(lineage)
