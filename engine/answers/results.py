"""The result of a search, in the form of the public contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from speckit_memory.engine.answers.request import RecordedRequest
from speckit_memory.engine.answers.result_parts import PipelineIdentity, SearchNotes, SearchPlan, Timings
from speckit_memory.pipeline.running.explain import StepExplanation
from speckit_memory.pipeline.running.runner import Outcome


@dataclass(frozen=True, slots=True)
class ChannelEvidence:
    """A result's rank in one channel, from 1, and its raw score on the channel's scale."""

    rank: int
    score: float


_NO_TEXTS: Mapping[str, Any] = {"channels": {}, "steps": (), "snippet": "", "passage": "", "reason": "", "notes": {}}


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One memory of an answer.

    Lines and heading are those of the passage shown; `snippet` is an excerpt of it, `passage` its whole text. `content`
    is the whole text of the memory, "" unless requested (feature R4). A `repeated` row was sent in this session before:
    it has no text, and its note `already_sent` names the place (feature A2).
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

    def without_texts(self) -> ResultRow:
        """The row without evidence and texts, but for whether it has the whole text."""
        kept = {name: getattr(self, name) for name in self.__slots__}
        return ResultRow(**{**kept, **_NO_TEXTS, "content": self.content[:1]})

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
    """Another pipeline's answer to the same query over the same snapshot.

    `result` is None if it failed. `failure` names the first error and its step, "" for none; an optional step may fail
    despite a result. `parted_at` is the first step whose outcome differs from the served pipeline, "" for none.
    `total_ms` is the time of this pipeline alone, `spent_ms` the extra time here, where shared steps ran once.
    """

    name: str
    pipeline: PipelineIdentity
    result: SearchResult | None
    failure: str
    parted_at: str
    total_ms: float
    spent_ms: float

    def as_json(self) -> dict[str, Any]:
        """The entry of `shadows`, without comparison figures."""
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
    """The answer to one query.

    `outcome` holds the columns behind it, for explanations. `asked` is the recorded question, for repeating it with
    changes. `why_nothing` is the reason for an answer that no rewording would fill; it is also among the warnings.
    `origin` names the open store, which the ids belong to. `query_id` (16 hexadecimal digits) names the query in logs
    and records. `beside` has the answers of other pipelines (see `Memory.with_shadows`). `watched`: variants are
    compared with the pipeline.
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
    asked: RecordedRequest | None = field(default=None, repr=False, compare=False)

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
        """This empty answer with a reason."""
        return replace(self, why_nothing=why, notes=replace(self.notes, warnings=(why,)))

    def warned(self, *, before: Iterable[str] = (), after: Iterable[str] = ()) -> SearchResult:
        """This answer with further warnings before and after its own; the answer itself if there are none."""
        warnings = (*before, *self.notes.warnings, *after)
        if len(warnings) == len(self.notes.warnings):
            return self
        return replace(self, notes=replace(self.notes, warnings=warnings))

    def with_fact(self, name: str, value: Any) -> SearchResult:
        """This answer with a fact about it as a whole, under a name from `docs/datamodel.md`."""
        return replace(self, notes=replace(self.notes, facts={**self.notes.facts, name: value}))

    def without_texts(self) -> SearchResult:
        """A small copy with what is needed to record that the answer reached a reader."""
        rows = tuple(row.without_texts() for row in self.results)
        seen = self.outcome
        return replace(self, results=rows, outcome=Outcome(seen.query, seen.pool, {}, seen.trace))

    def asked_again(self, query_id: str, now: float) -> SearchResult:
        """This answer for a repetition of the question at `now` (epoch seconds) under another id."""
        query = replace(self.outcome.query, now=now)
        return replace(self, query_id=query_id, outcome=replace(self.outcome, query=query))

    def opened(self, count: int | None = None) -> list[int]:
        """The memories among the first `count` results (all by default) that were shown with more than an excerpt."""
        sections = bool(self.outcome.query.anchors)
        return [row.id for row in self.results[:count] if sections or row.content]

    def as_shown(self, texts: Sequence[str]) -> SearchResult:
        """This answer with the texts that reached the reader for its first rows, some of them shortened."""
        rows = [
            replace(row, content=text) if row.content else replace(row, snippet=text)
            for row, text in zip(self.results, texts, strict=False)
        ]
        return replace(self, results=(*rows, *self.results[len(rows) :]))

    @property
    def repeats(self) -> int:
        """The number of rows that the session was sent before (feature A2)."""
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
