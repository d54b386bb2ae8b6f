"""Asks every query of every pipeline, through the same entry as production, and keeps what came back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.datasets.trec import Ranking
from speckit_memory.evaluation.statistics.metrics import DEPTH, without_pinned
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.running.runner import Outcome


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation has come: `done` of `total` documents indexed, or of `total` searches made."""

    phase: Literal["index", "search"]
    done: int
    total: int


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one pipeline made of one query. `degraded` maps each part that did not do its work to the reason;
    `channels` names those that found each row of the ranking."""

    ranking: Ranking
    latency_ms: float
    complexity: str
    intent: str
    degraded: Mapping[str, str]
    channels: tuple[tuple[str, ...], ...] = ()
    gap: bool = False
    """Whether the answer warned that nothing fits the question."""
    pinned: frozenset[str] = frozenset()
    """The documents that surface whatever is asked: those of the constitutional tier."""
    outcome: Outcome | None = field(default=None, repr=False, compare=False)
    """The columns behind it, for whoever asks where two pipelines part."""

    @property
    def keys(self) -> list[str]:
        """The documents, best first."""
        return [key for key, _ in self.ranking]

    def ranked(self, judgements: Mapping[str, float]) -> list[str]:
        """The documents that metrics are computed of, for these judgements of the query."""
        return without_pinned(self.keys, self.pinned, judgements)


def measure(
    memories: Sequence[Memory], queries: Sequence[DatasetQuery], *, now: float, seed: int, progress: Report
) -> list[list[Answer]]:
    """The answers of each memory's pipeline, in the order of `memories` and of `queries`.

    The queries run in a seeded random order, and all pipelines answer one query before the next, in random turns: what
    slows the machine for a while, or is warm already, falls on all of them alike. Before the clock counts, each
    pipeline answers one query, so that loading the store and the models is no query's latency. No deadline is set:
    what a pipeline finds does not depend on how busy the machine is. As many more rows are asked for as constitutional
    memories may stand before them, so that the metrics read equally deep with and without these.
    """
    limit = DEPTH + min(len(memories[0].store().attributes.of_tier(Tier.CONSTITUTIONAL)), DEPTH)
    rng = np.random.default_rng(seed)
    answers: dict[tuple[int, int], Answer] = {}
    total = len(memories) * len(queries)
    for memory in memories:
        _timed(memory, queries[0], limit, now)
    for place in rng.permutation(len(queries)).tolist():
        for turn in rng.permutation(len(memories)).tolist():
            answers[turn, place] = _timed(memories[turn], queries[place], limit, now)
            progress(Progress("search", len(answers), total))
    return [[answers[turn, place] for place in range(len(queries))] for turn in range(len(memories))]


def _timed(memory: Memory, query: DatasetQuery, limit: int, now: float) -> Answer:
    started = time.perf_counter_ns()
    result = memory.search(
        query.text, limit=limit, folder=query.folder, mode=query.mode, now=now, deadline_ms=None, snippet=0
    )
    return _answer(result, (time.perf_counter_ns() - started) / 1e6)


def _answer(result: SearchResult, latency_ms: float) -> Answer:
    return Answer(
        ranking=tuple((row.key, row.score) for row in result.results),
        latency_ms=latency_ms,
        complexity=result.plan.complexity,
        intent=result.plan.intent,
        degraded={part.part: part.reason for part in result.notes.degraded},
        channels=tuple(tuple(row.channels) for row in result.results),
        gap=result.notes.evidence_gap,
        pinned=frozenset(row.key for row in result.results if row.tier == Tier.CONSTITUTIONAL),
        outcome=result.outcome,
    )
