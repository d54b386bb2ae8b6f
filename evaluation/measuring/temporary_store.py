"""A temporary store for one evaluation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import Dataset
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.measuring.measure import EvaluationProgress, OnMeasured
from speckit_memory.memory.intake import index_report
from speckit_memory.memory.intake.source import Source
from speckit_memory.pipeline.configuration.loading import PipelineSource

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
    with TemporaryDirectory(prefix="speckit-evaluation-") as name:
        folder = Path(name)
        file = folder / "evaluation.db"
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
