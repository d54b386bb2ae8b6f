"""Answers of the steps of a run, keyed by their inputs, so that another run can reuse them.

Components are pure functions of their parameters, the query with its plan, the rows so far, and the store. So the
inputs of a step need not be compared: they are equal if the same steps with the same parameters led to them over the
same state of the store. A number, the lineage, identifies that history; two runs with the same lineage are in the same
state.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

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
    """The answer of a step that ran, its record, and the lineage after it."""

    answer: Any
    record: StepRecord
    lineage: Lineage


class Answers(Protocol):
    """The answers of steps, recorded or reused during one run."""

    shared_ns: int
    """The nanoseconds that reused answers took originally."""
    reached: list[Reached]

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> MemoEntry | None:
        """The answer that another run recorded for this step at this lineage, None if the step must run."""

    def take(self, kept: MemoEntry) -> Lineage:
        """Reuses such an answer; returns the new lineage."""

    def ran(
        self, here: Lineage, step: BoundStep[object], branch: Hashable, answer: object, record: StepRecord
    ) -> Lineage:
        """The lineage after a step of this run has answered.

        Args:
            here: The lineage before the step.
            step: The step that ran.
            branch: Identifies one of several concurrent calls with the same input; None outside branches.
            answer: Its checked answer.
            record: Its trace record.
        """

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """The lineage after the answers of several branches were combined."""

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """The lineage once the query has its plan: the same for all runs with an equal plan."""


class RunMemo:
    """Records the answers of one run. They are the frame's own copies, which no component references or modifies.

    A step that failed, was unavailable or came too late does not change the lineage, and has no answer here.
    """

    __slots__ = ("_answers", "_configurations", "_joined", "_last", "_understood", "reached", "shared_ns")

    def __init__(self, configurations: Configurations) -> None:
        """`configurations` is the cache of the running pipeline."""
        self._configurations = configurations
        # by the lineage before the step, the step's configuration, and the branch
        self._answers: dict[tuple[Lineage, Configuration, Hashable], MemoEntry] = {}
        self._joined: dict[tuple[Lineage, tuple[Lineage, ...]], Lineage] = {}
        self._last = START
        self._understood: tuple[Plan, Lineage] | None = None
        self.shared_ns = 0
        self.reached: list[Reached] = []

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> None:
        """None: the recording run executes every step."""

    def take(self, kept: MemoEntry) -> Lineage:
        """The lineage after another run's answer."""
        return kept.lineage

    def ran(
        self, here: Lineage, step: BoundStep[object], branch: Hashable, answer: object, record: StepRecord
    ) -> Lineage:
        """Records the answer of a step, and returns the new lineage.

        Args:
            here: The lineage before the step.
            step: The step that ran.
            branch: Identifies one of several concurrent calls with the same input; None outside branches.
            answer: Its checked answer.
            record: Its trace record.
        """
        self._last += 1
        self._answers[here, self._configurations.of(step), branch] = MemoEntry(answer, record, self._last)
        return self._last

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """Records a combination of branches, and returns the new lineage."""
        self._last += 1
        self._joined[here, branches] = self._last
        return self._last

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """Records the plan, and keeps the lineage."""
        self._understood = plan, here
        return here

    def of_plan(self, plan: Plan) -> Lineage | None:
        """The lineage at which the run had this plan, None if its plan was different."""
        return self._understood[1] if self._understood and self._understood[0] == plan else None

    def answer(self, here: Lineage, of: Configuration, branch: Hashable) -> MemoEntry | None:
        """The answer of a step with this configuration at this lineage, None if there is none."""
        return self._answers.get((here, of, branch))

    def joined(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage | None:
        """The lineage after these branches were combined, None if the run never combined them."""
        return self._joined.get((here, branches))


class MemoisedRun:
    """A run that reuses the answers of an earlier run while their lineages are equal."""

    __slots__ = ("_configurations", "_earlier", "_own", "reached", "shared_ns")

    def __init__(self, earlier: RunMemo, configurations: Configurations) -> None:
        """`configurations` is the cache of the pipeline that runs now."""
        self._earlier = earlier
        self._configurations = configurations
        # counted downwards from START: never equal to a lineage of the earlier run, which counts upwards
        self._own = START
        self.shared_ns = 0
        self.reached: list[Reached] = []

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> MemoEntry | None:
        """The earlier run's answer at this lineage; None once the runs have diverged."""
        return self._earlier.answer(here, self._configurations.of(step), branch) if here >= START else None

    def take(self, kept: MemoEntry) -> Lineage:
        """The lineage of the earlier run; adds the original time of the step to `shared_ns`."""
        self.shared_ns += kept.record.ns
        return kept.lineage

    def ran(
        self,
        here: Lineage,  # noqa: ARG002 -- required by the protocol, as are all of these
        step: BoundStep[object],  # noqa: ARG002
        branch: Hashable,  # noqa: ARG002
        answer: object,  # noqa: ARG002
        record: StepRecord,  # noqa: ARG002
    ) -> Lineage:
        """A new lineage that the earlier run never had: the runs diverge here.

        Args:
            here: Not used, like all of these; `Answers.ran` requires them.
            step: Not used.
            branch: Not used.
            answer: Not used.
            record: Not used.
        """
        return self._elsewhere()

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """The lineage of the earlier run if it combined the same answers, else a new one."""
        found = self._earlier.joined(here, branches)
        return self._elsewhere() if found is None else found

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """The lineage of the earlier run if its plan was equal: later steps depend on nothing else of the history."""
        found = self._earlier.of_plan(plan)
        return here if found is None else found

    def _elsewhere(self) -> Lineage:
        self._own -= 1
        return self._own
