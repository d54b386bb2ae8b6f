"""Runs every query through every pipeline by the production entry point, and records the answers.

The documents of a dataset are indexed into a temporary store for one evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

import numpy as np

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.datasets.trec import Ranking
from speckit_memory.evaluation.statistics.metrics import DEPTH, without_pinned
from speckit_memory.memory.intake import index_report
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.configuration.loading import PipelineSource
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


_REFUSALS = ("E032", "E080")
"""E032: a memory has the maximum number of edges; E080: a document could not be indexed."""


@dataclass(frozen=True, slots=True)
class ThrowawayStore:
    """One store seen through several pipelines. `index_s` is the time of indexing in seconds."""

    memories: tuple[Memory, ...]
    index_s: float
    warnings: tuple[str, ...]


class Opener(Protocol):
    """Opens the store in which the documents of a dataset are searched, once for all pipelines."""

    def __call__(
        self,
        dataset: Dataset,
        pipelines: Sequence[PipelineSource],
        *,
        environ: Mapping[str, str] | None,
        progress: OnMeasured,
    ) -> AbstractContextManager[ThrowawayStore]:
        """Yields the open store."""


@contextmanager
def throwaway_store(
    dataset: Dataset,
    pipelines: Sequence[PipelineSource],
    *,
    environ: Mapping[str, str] | None,
    progress: OnMeasured,
) -> Iterator[ThrowawayStore]:
    """Indexes a dataset once, for all pipelines. They are built first, so that an invalid one is reported at once.

    Where the edges of the dataset are dense, memories are ranked and grouped by them, as in a permanent store.

    Args:
        dataset: The dataset.
        pipelines: Paths, presets or values.
        environ: Environment variables; None for `os.environ`.
        progress: Called after every indexed document.
    """
    with (
        TemporaryDirectory(prefix="speckit-evaluation-") as name,
        filled_store(Path(name, "evaluation.db"), dataset, pipelines, environ=environ, progress=progress) as store,
    ):
        yield store


@contextmanager
def filled_store(
    file: Path,
    dataset: Dataset,
    pipelines: Sequence[PipelineSource],
    *,
    environ: Mapping[str, str] | None,
    progress: OnMeasured,
) -> Iterator[ThrowawayStore]:
    """Indexes a dataset, as `throwaway_store` does, into a store that stays.

    Args:
        file: The store, or a store link for one in PostgreSQL.
        dataset: The dataset.
        pipelines: Paths, presets or values.
        environ: Environment variables; None for `os.environ`.
        progress: Called after every indexed document.
    """
    with ExitStack() as stack:
        first = stack.enter_context(Memory.open(file, pipelines[0], environ=environ, shadows=False))
        others = [stack.enter_context(first.using(pipeline)) for pipeline in pipelines[1:]]
        started = time.perf_counter()
        warnings = [*_documents(first, dataset, progress), *_edges(first, dataset)]
        first.graph.rank()  # do now what the background work would do later
        first.models.encode()
        yield ThrowawayStore((first, *others), time.perf_counter() - started, tuple(warnings))


def _documents(memory: Memory, dataset: Dataset, progress: OnMeasured) -> Iterator[str]:
    """Indexes the documents; yields warnings about those that failed or have no vectors."""
    total = len(dataset.keys)

    def forward(state: index_report.IndexProgress) -> None:
        progress(EvaluationProgress("index", state.done, total))

    report = memory.index_documents((source_of(document) for document in dataset.corpus()), progress=forward)
    if report.failures:
        yield f"{len(report.failures):,} of {total:,} documents could not be indexed; the first: {report.failures[0]}"
    if report.pending:
        yield f"{report.pending:,} of {total:,} documents have no vectors: the embedding model is not available"


def source_of(document: DatasetDocument) -> Source:
    """Converts a document of a dataset to a source for indexing."""
    return Source(
        key=document.key,
        text=document.text,
        title=document.title,
        folder=document.folder,
        tier=document.tier,
        triggers=document.triggers,
        created_at=document.created_at,
    )


def _edges(memory: Memory, dataset: Dataset) -> Iterator[str]:
    """Adds the causal edges; yields a warning with the number that the store refused."""
    refused: list[SpeckitError] = []
    for edge in dataset.edges:
        try:
            memory.graph.add_edges([edge], created_by="manual")
        except SpeckitError as error:
            if error.code not in _REFUSALS:
                raise
            refused.append(error)
    if refused:
        yield f"{len(refused):,} of {len(dataset.edges):,} edges were left out; the first: {refused[0]}"
