"""What happened to a query, as values: step records, losses and degradations (features P8, P9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pipeline.ports import Ids

Stage = Literal["candidates", "fusion", "rerank", "annotate"]
STAGES: tuple[Stage, ...] = ("candidates", "fusion", "rerank", "annotate")
State = Literal["ran", "unavailable", "failed", "skipped"]


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


@dataclass(frozen=True, slots=True)
class Loss:
    """Memories or chunks that a step took out."""

    step: str
    ids: Ids


@dataclass(frozen=True, slots=True)
class Degradation:
    """A part that did not do its work: what failed, why, what served instead, how much confidence that costs."""

    part: str
    reason: str
    instead: str
    confidence_impact: Literal["low", "medium"]

    def as_json(self) -> dict[str, str]:
        """The entry of `notes.degraded` in an answer."""
        return {
            "part": self.part,
            "reason": self.reason,
            "instead": self.instead,
            "confidence_impact": self.confidence_impact,
        }


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
