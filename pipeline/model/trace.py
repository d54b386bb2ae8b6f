"""The trace of a query, as values: step records, losses and degradations (features P8, P9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from speckit_memory.pipeline.ports import Ids

Stage = Literal["candidates", "fusion", "rerank", "annotate"]
STAGES: tuple[Stage, ...] = ("candidates", "fusion", "rerank", "annotate")
State = Literal["ran", "unavailable", "failed", "skipped"]
DEADLINE = "deadline"
"""The name of the degraded part if the deadline passed, for any steps."""


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
    """Whether the answer was reused from another run of the same step; `ns` is the time of that run."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Memories or chunks that a step removed."""

    step: str
    ids: Ids


@dataclass(frozen=True, slots=True)
class Degradation:
    """A part that did not work: what failed, why, what was used instead, and the effect on confidence.

    `steps` names all steps for which the deadline left no time; they count as one part, `DEADLINE`.
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
    """One degradation for all steps that were skipped because of the deadline; empty if there are none."""
    skipped = [record for record in records if record.state == "skipped"]
    if not skipped:
        return []
    searches = any(record.stage == "candidates" for record in skipped)
    steps = tuple(dict.fromkeys(record.step for record in skipped))
    reason = f"the deadline passed before {_list(steps)} could run"
    if searches:
        return [
            Degradation(DEADLINE, reason, "the other steps; results that only these find are missing", "medium", steps)
        ]
    return [Degradation(DEADLINE, reason, "the order without them; no result is missing", "low", steps)]


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of a run, without the text of queries or memories."""

    pipeline: str
    config_hash: str
    steps: tuple[StepRecord, ...] = ()
    losses: tuple[Loss, ...] = ()
    degraded: tuple[Degradation, ...] = ()
    total_ns: int = 0
    stage_ns: dict[Stage, int] = field(default_factory=dict)
    budget_ms: float = 0.0
    """The budget for the query's complexity (feature P10). Exceeding it degrades nothing, but is reported."""

    @property
    def over_budget(self) -> bool:
        """Whether the search took longer than its budget."""
        # Milliseconds to nanoseconds.
        return self.total_ns > self.budget_ms * 1e6
