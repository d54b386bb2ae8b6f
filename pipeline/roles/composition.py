"""The built pipeline: a frozen object with four named slots of four types; not a list of stages, not a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import (
    About,
    Annotator,
    Channel,
    Fuser,
    Params,
    Recoverer,
    Reranker,
    Signal,
    Understander,
)

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class BoundStep(Generic[T_co]):
    """A component with its parameters, ready to run.

    `gives` is the scale of the scores it returns, None if it keeps the previous scale. An `optional` step may be
    skipped when it fails; the answer then says so.
    """

    id: str
    use: str
    component: T_co
    params: Params
    about: About
    gives: Scale | None
    optional: bool = False

    @property
    def gives_way(self) -> bool:
        """Whether the step is skipped once the deadline has passed: it is costly, or optional in the file."""
        return self.optional or self.about.costly


@dataclass(frozen=True, slots=True)
class CandidateStage:
    """Stage 1: query understanding, then the channels, then recovery if they find nothing."""

    understand: tuple[BoundStep[Understander], ...]
    channels: tuple[BoundStep[Channel], ...]
    recover: tuple[BoundStep[Recoverer], ...] = ()


@dataclass(frozen=True, slots=True)
class FusionStage:
    """Stage 2: one fuser, then signals."""

    fuser: BoundStep[Fuser]
    signals: tuple[BoundStep[Signal], ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Four stages in fixed order (feature P1). `hash` identifies the effective configuration."""

    name: str
    hash: str
    budgets_ms: dict[str, float]
    candidates: CandidateStage
    fusion: FusionStage
    rerank: tuple[BoundStep[Reranker], ...]
    annotate: tuple[BoundStep[Annotator], ...]
