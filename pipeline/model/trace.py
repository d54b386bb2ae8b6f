"""What happened to a query, as values: step records, losses and degradations (features P8, P9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from speckit_memory.pipeline.ports import Ids

Stage = Literal["candidates", "fusion", "rerank", "annotate"]
STAGES: tuple[Stage, ...] = ("candidates", "fusion", "rerank", "annotate")
State = Literal["ran", "unavailable", "failed", "skipped"]
DEADLINE = "deadline"
"""The part that is missing when the time was over, whichever steps that were."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of one query. `n_in` and `n_out` count rows; `ns` is the time spent in the component."""

    stage: Stage
    step: str
    n_in: int
    n_out: int
    ns: int
    state: State
    reason: str = ""
    shared: bool = False
    """Whether the answer is that of another run of the same step, whose time `ns` tells."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Memories or chunks that a step took out."""

    step: str
    ids: Ids


@dataclass(frozen=True, slots=True)
class Degradation:
    """A part that did not do its work: what failed, why, what served instead, how much confidence that costs.

    `steps` names all steps for which the deadline left no time; they are one part, `DEADLINE`.
    """

    part: str
    reason: str
    instead: str
    confidence_impact: Literal["low", "medium"]
    steps: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The entry of `notes.degraded` in an answer."""
        named = {"steps": list(self.steps)} if self.steps else {}
        return {
            **named,
            "part": self.part,
            "reason": self.reason,
            "instead": self.instead,
            "confidence_impact": self.confidence_impact,
        }


def too_late(records: Sequence[StepRecord]) -> list[Degradation]:
    """All steps that gave way to the deadline as one loss; none when none did."""
    skipped = [record for record in records if record.state == "skipped"]
    if not skipped:
        return []
    searches = any(record.stage == "candidates" for record in skipped)
    steps = tuple(dict.fromkeys(record.step for record in skipped))
    reason = f"the deadline passed before {_listed(steps)} could run"
    if searches:
        return [Degradation(DEADLINE, reason, "the other steps; what only these find is missing", "medium", steps)]
    return [Degradation(DEADLINE, reason, "the order without them; nothing that was found is missing", "low", steps)]


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that happened, without the text of queries or memories."""

    pipeline: str
    config_hash: str
    steps: tuple[StepRecord, ...] = ()
    losses: tuple[Loss, ...] = ()
    degraded: tuple[Degradation, ...] = ()
    total_ns: int = 0
    stage_ns: dict[Stage, int] = field(default_factory=dict)
    budget_ms: float = 0.0
    """The budget of the query's complexity (feature P10). Overrunning it degrades nothing, but is said."""

    @property
    def over_budget(self) -> bool:
        """Whether the search took longer than its budget."""
        return self.total_ns > self.budget_ms * 1e6
