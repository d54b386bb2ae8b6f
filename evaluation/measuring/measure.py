"""Runs every query through every pipeline by the production entry point, and records the answers."""

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
class EvaluationProgress:
    """The progress of an evaluation: `done` of `total` documents indexed, or of `total` searches made."""

    phase: Literal["index", "search"]
    done: int
    total: int


OnMeasured = Callable[[EvaluationProgress], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one pipeline to one query. `degraded` maps each part that did not do its work to the reason;
    `channels` names the channels that found each row of the ranking."""

    ranking: Ranking
    latency_ms: float
    complexity: str
    intent: str
    degraded: Mapping[str, str]
    channels: tuple[tuple[str, ...], ...] = ()
    gap: bool = False
    """Whether the answer warned that nothing fits the question."""
    pinned: frozenset[str] = frozenset()
    """The documents that surface for every query: those of the constitutional tier."""
    outcome: Outcome | None = field(default=None, repr=False, compare=False)
    """The columns behind the answer, to find the first step at which two pipelines differ."""

    @property
    def keys(self) -> list[str]:
        """The documents, best first."""
        return [key for key, _ in self.ranking]

    def ranked(self, judgements: Mapping[str, float]) -> list[str]:
        """The documents to compute metrics from, given these judgements of the query."""
        return without_pinned(self.keys, self.pinned, judgements)


def measure(
    memories: Sequence[Memory], queries: Sequence[DatasetQuery], *, now: float, seed: int, progress: OnMeasured
) -> list[list[Answer]]:
    """The answers of each memory's pipeline, in the order of `memories` and of `queries`.

    The queries run in a seeded random order, and all pipelines answer a query in random order before the next one, so
    that a slow phase of the machine or a warm cache affects all of them alike. Each pipeline answers one query before
    timing starts, so that loading the store and the models is not counted. There is no deadline, so results do not
    depend on the load of the machine. The limit is raised by the number of constitutional memories, which may rank
    first, so that the metrics cover equally many other rows.

    Args:
        memories: One memory per pipeline, over the same store.
        queries: The queries.
        now: Time of all queries in epoch seconds.
        seed: Seeds the order of queries and pipelines.
        progress: Called after every search.
    """
    limit = DEPTH + min(len(memories[0].session.view().attributes.of_tier(Tier.CONSTITUTIONAL)), DEPTH)
    rng = np.random.default_rng(seed)
    answers: dict[tuple[int, int], Answer] = {}
    total = len(memories) * len(queries)
    for memory in memories:
        # warm-up
        _timed(memory, queries[0], limit, now)
    for place in rng.permutation(len(queries)).tolist():
        for turn in rng.permutation(len(memories)).tolist():
            answers[turn, place] = _timed(memories[turn], queries[place], limit, now)
            progress(EvaluationProgress("search", len(answers), total))
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
