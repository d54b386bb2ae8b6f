"""What the steps of a run answered, under what each of them was asked, so that another run need not ask again.

Components are pure functions of their parameters, the query with its plan, the rows so far, and the store. So the
inputs of a step need not be compared: they are the same when the same steps, with the same parameters, led to them over
one state of the store. That history is told by a number, a lineage; two runs that have come to the same one are at the
same place.
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
"""The question before any step."""
Configuration = tuple[str, str, str, str]
Reached = tuple[str, object, object]
"""A step with what there was before it and after it, for `pipeline.comparing.divergence`."""


def configuration(step: BoundStep[object]) -> Configuration:
    """What decides, beside its inputs, what a step answers. Two steps with the same one may stand for each other."""
    kind = type(step.component)
    return step.use, step.id, step.params.model_dump_json(), f"{kind.__module__}.{kind.__qualname__} {step.gives}"


class Configurations:
    """The configurations of the steps of one pipeline, each made out once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[BoundStep[object], Configuration]] = {}

    def of(self, step: BoundStep[object]) -> Configuration:
        """The configuration of a step."""
        found = self._known.get(id(step))
        if found is None:
            found = self._known[id(step)] = step, configuration(step)  # the step stays, and with it its id
        return found[1]


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer of a step that ran, its record, and the lineage of what came of it."""

    answer: Any
    record: StepRecord
    lineage: Lineage


class Answers(Protocol):
    """What the steps of runs answered, as one run meets it on its way."""

    shared_ns: int
    """What the steps took whose answers were taken over."""
    reached: list[Reached]

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> Kept | None:
        """What another run has from this step at this place, None when the step is to be asked."""

    def take(self, kept: Kept) -> Lineage:
        """Takes such an answer over. Where the run is then."""

    def ran(
        self, here: Lineage, step: BoundStep[object], branch: Hashable, answer: object, record: StepRecord
    ) -> Lineage:
        """Where a run is after a step of its own has answered."""

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """Where it is after several answers to one question were put together."""

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """Where it is once the query has its plan: in one place with all that came to the same plan."""


class Recording:
    """Keeps the answers of one run. They are the frame's own copies, which no component has held, and stay as they are.

    A step that failed, was unavailable or came too late leaves the run where it was, and has no answer here.
    """

    __slots__ = ("_answers", "_configurations", "_joined", "_last", "_understood", "reached", "shared_ns")

    def __init__(self, configurations: Configurations) -> None:
        """`configurations` are those of the pipeline that runs."""
        self._configurations = configurations
        self._answers: dict[tuple[Lineage, Configuration, Hashable], Kept] = {}
        self._joined: dict[tuple[Lineage, tuple[Lineage, ...]], Lineage] = {}
        self._last = START
        self._understood: tuple[Plan, Lineage] | None = None
        self.shared_ns = 0
        self.reached: list[Reached] = []

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> None:
        """The first run asks every step."""

    def take(self, kept: Kept) -> Lineage:
        """Where another run's answer leads."""
        return kept.lineage

    def ran(
        self, here: Lineage, step: BoundStep[object], branch: Hashable, answer: object, record: StepRecord
    ) -> Lineage:
        """Keeps what a step answered at a place."""
        self._last += 1
        self._answers[here, self._configurations.of(step), branch] = Kept(answer, record, self._last)
        return self._last

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """A new place."""
        self._last += 1
        self._joined[here, branches] = self._last
        return self._last

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """Remembers the plan."""
        self._understood = plan, here
        return here

    def of_plan(self, plan: Plan) -> Lineage | None:
        """Where the run was with this plan, None when it had another one."""
        return self._understood[1] if self._understood and self._understood[0] == plan else None

    def answer(self, here: Lineage, of: Configuration, branch: Hashable) -> Kept | None:
        """What a step of this configuration answered at this place, None when it did not."""
        return self._answers.get((here, of, branch))

    def joined(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage | None:
        """The place at which these answers came together, None when the run never was there."""
        return self._joined.get((here, branches))


class Following:
    """A run that takes what an earlier one was answered, as long as it is where that one was."""

    __slots__ = ("_configurations", "_earlier", "_own", "reached", "shared_ns")

    def __init__(self, earlier: Recording, configurations: Configurations) -> None:
        """`configurations` are those of the pipeline that follows."""
        self._earlier = earlier
        self._configurations = configurations
        self._own = START
        self.shared_ns = 0
        self.reached: list[Reached] = []

    def known(self, here: Lineage, step: BoundStep[object], branch: Hashable) -> Kept | None:
        """What the earlier run was answered here; nothing where it never was."""
        return self._earlier.answer(here, self._configurations.of(step), branch) if here >= START else None

    def take(self, kept: Kept) -> Lineage:
        """Goes where the earlier run went, and counts the time that the step took."""
        self.shared_ns += kept.record.ns
        return kept.lineage

    def ran(
        self,
        here: Lineage,  # noqa: ARG002 -- a protocol's, as all of these
        step: BoundStep[object],  # noqa: ARG002
        branch: Hashable,  # noqa: ARG002
        answer: object,  # noqa: ARG002
        record: StepRecord,  # noqa: ARG002
    ) -> Lineage:
        """A place at which the earlier run never was."""
        return self._elsewhere()

    def join(self, here: Lineage, branches: tuple[Lineage, ...]) -> Lineage:
        """The place of the earlier run, if it put the same answers together."""
        found = self._earlier.joined(here, branches)
        return self._elsewhere() if found is None else found

    def understood(self, here: Lineage, plan: Plan) -> Lineage:
        """The place of the earlier run if it had the same plan: what follows looks at nothing else of the way."""
        found = self._earlier.of_plan(plan)
        return here if found is None else found

    def _elsewhere(self) -> Lineage:
        self._own -= 1
        return self._own
