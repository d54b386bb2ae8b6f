"""What an answer says beside its rows: how the question was read, what steps noted, where the time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NotRequired, TypedDict

from speckit_memory.pipeline.model.trace import Degradation


class NamedMemory(TypedDict):
    """Another memory that an answer speaks of, as a reader knows it."""

    id: int
    key: str
    title: str
    words: NotRequired[str]
    """What it says, of one that replaces a result and is no better result itself."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the causal graph knows about a question (feature C15): how many memories its links connect with it, and
    whether these are too few to rest on."""

    connected: int
    gap: bool

    def as_json(self) -> dict[str, Any]:
        """The entry `coverage` of a plan."""
        return {"connected": self.connected, "gap": self.gap}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a question was understood, and what was done about it.

    `intent_confidence` lies in [0, 1]; `budget_ms` is what the complexity allows; `channels` were asked for each of the
    `variants`, the wordings; `respelt` has what was searched in place of words that no memory holds; `required` and
    `excluded` are what quotes and minus signs demand; `reasons` tell what decided.
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
    """What is to be known of an answer as a whole.

    `evidence_gap` says that the answer rests on little; `degraded` are the parts that did not do their work; `facts` is
    what steps of the last stage said, under the names that `docs/components.md` gives; `words_from`: "file" where
    neither a segment nor an index in memory was there; `vectors_from`: "lists" where lists of vectors answered; and
    `attended`, where a session is resumed: the memories that it attended to, with their attention.
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
    """One run of one step: milliseconds, rows before and after it, and whether it ran, failed or was left out."""

    stage: str
    step: str
    ms: float
    rows_in: int
    rows_out: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds: of opening the store, which no total counts, of the search, of its stages and of each step.

    Steps stand in the order in which they ran, a channel once for each wording that it searched.
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
    """Which pipeline answered: two with one hash do the same, whatever they are called."""

    name: str
    hash: str
