"""What a search returns, in the shape of the outer contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from speckit_memory.engine.answers.request import Asked
from speckit_memory.engine.answers.result_parts import PipelineIdentity, SearchNotes, SearchPlan, Timings
from speckit_memory.pipeline.running.explain import StepExplanation
from speckit_memory.pipeline.running.runner import Outcome


@dataclass(frozen=True, slots=True)
class ChannelEvidence:
    """Where one channel saw a result: its rank from 1, and its raw score on the channel's own scale."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One memory of an answer. `id` and `key` name the memory; lines and heading those of the passage shown, of which
    `snippet` is an excerpt and `passage` the whole, for doors with room for it.

    `content` is the whole text of the memory, empty unless it was asked for (feature R4). One that is `repeated` was
    sent in this session already: it has neither text, and its note `already_sent` names the place (feature A2).
    """

    id: int
    key: str
    title: str
    folder: str
    tier: str
    state: str
    score: float
    channels: Mapping[str, ChannelEvidence]
    steps: tuple[tuple[str, float], ...]
    snippet: str
    reason: str
    heading: str
    first_line: int
    last_line: int
    chunk_hits: int
    notes: Mapping[str, Any]
    passage: str = ""
    content: str = ""
    repeated: bool = False

    def as_json(self) -> dict[str, Any]:
        """The entry of `results`."""
        return {
            "id": self.id,
            "key": self.key,
            "title": self.title,
            "folder": self.folder,
            "tier": self.tier,
            "state": self.state,
            "score": self.score,
            "channels": {name: {"rank": seen.rank, "score": seen.score} for name, seen in self.channels.items()},
            "steps": [{"step": step, "score": score} for step, score in self.steps],
            "snippet": self.snippet,
            "reason": self.reason,
            "heading": self.heading,
            "lines": [self.first_line, self.last_line],
            "chunk_hits": self.chunk_hits,
            "notes": dict(self.notes),
            **({"content": self.content} if self.content else {}),
        }


@dataclass(frozen=True, slots=True)
class ShadowAnswer:
    """What another pipeline made of the same query over the same state of the store.

    `result` is None when it failed; `failure` names the kind of the first error and its step, "" for none, and an
    optional step may have failed beside a result. `parted_at` is the first step whose outcome is another than that of
    the pipeline that is served, "" where none is. `total_ms` is what the query takes through this pipeline alone;
    `spent_ms` is what it took here, where steps that both have ran once.
    """

    name: str
    pipeline: PipelineIdentity
    result: SearchResult | None
    failure: str
    parted_at: str
    total_ms: float
    spent_ms: float

    def as_json(self) -> dict[str, Any]:
        """The entry of `shadows`, without figures of comparison."""
        found = self.result.as_json() if self.result else {}
        return {
            "name": self.name,
            "pipeline": asdict(self.pipeline),
            "results": found.get("results", []),
            "notes": found.get("notes"),
            "failure": self.failure,
            "parted_at": self.parted_at,
            "total_ms": self.total_ms,
            "spent_ms": self.spent_ms,
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to one query, which `query_id` names in logs and records.

    `outcome` holds the columns behind it, for explanations; `asked` is what was asked, for whoever asks variations.

    `why_nothing` says what kept every memory from an empty answer, where other words would not help; it is among the
    warnings too. `origin` names the open store that answered, whose ids these are; `query_id` (16 hexadecimal digits)
    this one question, in logs and wherever it is noted. `beside` has what other pipelines answer, for a memory that
    asks some (see `Memory.beside`); `watched` tells that others are compared with the pipeline that answered.
    """

    query: str
    plan: SearchPlan
    results: tuple[ResultRow, ...]
    notes: SearchNotes
    pipeline: PipelineIdentity
    timings_ms: Timings
    outcome: Outcome = field(repr=False)
    why_nothing: str = ""
    origin: str = field(default="", repr=False, compare=False)
    query_id: str = field(default="", compare=False)
    beside: tuple[ShadowAnswer, ...] = field(default=(), repr=False, compare=False)
    watched: bool = field(default=False, repr=False, compare=False)
    asked: Asked | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The document of `search --json`."""
        return {
            "query": self.query,
            "query_id": self.query_id,
            "plan": self.plan.as_json(),
            "results": [row.as_json() for row in self.results],
            "notes": self.notes.as_json(),
            "pipeline": asdict(self.pipeline),
            "timings_ms": self.timings_ms.as_json(),
        }

    def holding_nothing(self, why: str) -> SearchResult:
        """The same answer, which holds nothing, with the reason for that."""
        return replace(self, why_nothing=why, notes=replace(self.notes, warnings=(why,)))

    def warned(self, *, before: Iterable[str] = (), after: Iterable[str] = ()) -> SearchResult:
        """The same answer with further warnings before and after its own."""
        return replace(self, notes=replace(self.notes, warnings=(*before, *self.notes.warnings, *after)))

    def with_fact(self, name: str, value: Any) -> SearchResult:
        """The same answer with a fact about it as a whole, under a name that `docs/datamodel.md` gives."""
        return replace(self, notes=replace(self.notes, facts={**self.notes.facts, name: value}))

    def without_texts(self) -> SearchResult:
        """As much of it as is needed to note that it has reached a reader: a tenth of its size and less, where whole
        memories were asked for."""
        rows = tuple(
            replace(row, channels={}, steps=(), snippet="", passage="", reason="", notes={}, content=row.content[:1])
            for row in self.results
        )
        return replace(self, results=rows, outcome=replace(self.outcome, notes={}))

    def asked_again(self, query_id: str, now: float) -> SearchResult:
        """The same answer to the same question, asked at `now` (epoch seconds) under another id."""
        query = replace(self.outcome.query, now=now)
        return replace(self, query_id=query_id, outcome=replace(self.outcome, query=query))

    def opened(self, count: int | None = None) -> list[int]:
        """The memories among the first `count` results, all unless given, that a reader got more of than an excerpt."""
        sections = bool(self.outcome.query.anchors)
        return [row.id for row in self.results[:count] if sections or row.content]

    def as_shown(self, texts: Sequence[str]) -> SearchResult:
        """The same answer with the texts of its first rows as they have reached the reader: some are cut on the way."""
        rows = [
            replace(row, content=text) if row.content else replace(row, snippet=text)
            for row, text in zip(self.results, texts, strict=False)
        ]
        return replace(self, results=(*rows, *self.results[len(rows) :]))

    @property
    def repeats(self) -> int:
        """How many rows the session has been sent already (feature A2)."""
        return sum(row.repeated for row in self.results)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one result got its score."""

    id: int
    key: str
    steps: tuple[StepExplanation, ...]
    channels: Mapping[str, ChannelEvidence]

    def as_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "id": self.id,
            "key": self.key,
            "channels": {name: {"rank": seen.rank, "score": seen.score} for name, seen in self.channels.items()},
            "steps": [
                {
                    "step": step.step,
                    "kind": step.kind,
                    "scale": step.scale,
                    "parts": step.parts,
                    **({"formula": step.formula} if step.formula else {}),
                    "before": step.before,
                    "after": step.after,
                }
                for step in self.steps
            ],
        }
