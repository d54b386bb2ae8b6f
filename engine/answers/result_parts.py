"""The parts of an answer other than rows: the parsed question, notes of steps, timings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NotRequired, TypedDict

from speckit_memory.pipeline.model.trace import Degradation


class NamedMemory(TypedDict):
    """Another memory that an answer refers to."""

    id: int
    key: str
    title: str
    words: NotRequired[str]
    """The decision of a successor that is ranked below the memory it replaces, or not at all."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The causal graph's coverage of a question (feature C15).

    `connected` memories are linked with it; `gap` says that these are too few to rely on.
    """

    connected: int
    gap: bool

    def as_json(self) -> dict[str, Any]:
        """The entry `coverage` of a plan."""
        return {"connected": self.connected, "gap": self.gap}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a question was understood, and what was done about it.

    `intent_confidence` is in [0, 1]. `budget_ms` is the budget for the complexity. `channels` ran for each query
    variant in `variants`. `respelt` maps unknown words to the words searched instead. `required` and `excluded` come
    from quotes and minus signs. `reasons` explain the decisions.
    """

    intent: str
    intent_confidence: float
    complexity: str
    complexity_confidence: str
    budget_ms: float
    channels: tuple[str, ...]
    variants: tuple[str, ...]
    coverage: Coverage | None
    respelt: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    reasons: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The entry `plan` of `search --json`."""
        return {
            "intent": self.intent,
            "intent_confidence": self.intent_confidence,
            "complexity": self.complexity,
            "complexity_confidence": self.complexity_confidence,
            "budget_ms": self.budget_ms,
            "channels": list(self.channels),
            "variants": list(self.variants),
            "coverage": self.coverage.as_json() if self.coverage else None,
            "respelt": {word: list(instead) for word, instead in self.respelt.items()},
            "required": list(self.required),
            "excluded": list(self.excluded),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class SearchNotes:
    """Facts about an answer as a whole.

    `evidence_gap`: the answer rests on little evidence. `degraded`: parts that did not work. `facts`: notes of
    annotators, under the names of `docs/components.md`; `words_from` is "file" if there was no segment, in a file
    or in memory; `vectors_from` is "lists" if the approximate vector index answered; `attended` lists the
    memories that a resumed session attended to, with their attention; `replica` is the replica that was read from.
    """

    evidence_gap: bool
    warnings: tuple[str, ...]
    degraded: tuple[Degradation, ...]
    facts: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The entry `notes` of `search --json`."""
        return {
            "evidence_gap": self.evidence_gap,
            **self.facts,
            "warnings": list(self.warnings),
            "degraded": [part.as_json() for part in self.degraded],
        }


@dataclass(frozen=True, slots=True)
class StepTiming:
    """One run of one step: milliseconds, rows before and after it, and whether it ran, failed or was skipped."""

    stage: str
    step: str
    ms: float
    rows_in: int
    rows_out: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds of opening the store (not part of the total), of the search, of its stages and of each step.

    Steps are in running order; a channel appears once per query variant.
    """

    opening: float
    total: float
    candidates: float
    fusion: float
    rerank: float
    annotate: float
    steps: tuple[StepTiming, ...]

    def as_json(self) -> dict[str, Any]:
        """The entry `timings_ms` of `search --json`."""
        return {**asdict(self), "steps": [asdict(step) for step in self.steps]}


@dataclass(frozen=True, slots=True)
class PipelineIdentity:
    """The pipeline that answered. Pipelines with equal hashes do the same under any name."""

    name: str
    hash: str
