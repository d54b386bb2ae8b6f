"""`eval run`: measures pipelines on a dataset.

The dataset is indexed once into a temporary store, all pipelines search that store, and every query uses the same entry
point as in production.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.pipelines import check
from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery
from speckit_memory.evaluation.datasets.trec import Ranking, check_run_file, write_run
from speckit_memory.evaluation.ground_truth.ground import DatasetSource, GroundSource
from speckit_memory.evaluation.measuring.measure import Answer, OnMeasured, measure
from speckit_memory.evaluation.measuring.temporary_store import Opener, throwaway_store
from speckit_memory.evaluation.running.further_report import further_figures, known_memories
from speckit_memory.evaluation.running.report import AbstentionScores, EvalReport, figures
from speckit_memory.evaluation.statistics.comparison import Values, compare
from speckit_memory.evaluation.statistics.metrics import evaluate
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource, load

SEED = 20
"""Seeds the sample of queries, their order, and the draws of the tests, so that a report can be repeated."""


def run(
    dataset: Path | GroundSource,
    pipelines: Sequence[PipelineSource] = (),
    *,
    run_file: Path | None = None,
    queries: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: OnMeasured | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
) -> EvalReport:
    """Measures each pipeline on a dataset or another source, and compares all pairs on nDCG@10 and MRR@5.

    Args:
        dataset: The folder of a dataset, or another source.
        pipelines: Paths, presets or values; none for the pipeline that a search would use.
        run_file: Receives the rankings as TREC run lines.
        queries: Size of the fixed random sample of queries; None for all.
        overrides: YAML values by "step.parameter", applied to all pipelines.
        progress: Called after every indexed document and every search.
        environ: Environment variables; `os.environ` by default.
        now: Time of all queries in epoch seconds; the present by default.

    Raises:
        SpeckitError: With every problem of the pipelines, or else of the dataset.
    """
    environ = os.environ if environ is None else environ
    chosen = load_pipelines(pipelines, overrides, environ)
    ground = (DatasetSource(dataset) if isinstance(dataset, Path) else dataset).ground(environ)
    measured = evaluate_pipelines(
        ground.dataset,
        chosen,
        run_file=run_file,
        queries=queries,
        progress=progress,
        environ=environ,
        now=now,
        opened=ground.opened,
        unanswerable=ground.unanswerable,
    )
    # combinations keeps the given order, so every pair is (earlier, later) and a comparison reads "later minus
    # earlier".
    report = measured.compared(list(combinations(measured.values, 2)))
    return replace(report, warnings=(*report.warnings, *ground.warnings))


def load_pipelines(
    pipelines: Sequence[PipelineSource], overrides: Mapping[str, str] | None, environ: Mapping[str, str]
) -> list[Effective]:
    """Loads the pipelines to measure; without any, the one that a search would use.

    Raises SpeckitError with the problems of all of them.
    """
    wanted = pipelines or [settings(environ=environ).pipeline]
    chosen = [load(source, environ, overrides, components.registry(environ).flag_files) for source in wanted]
    if problems := [problem for whole in chosen for problem in check(whole, environ)]:
        raise SpeckitError.of(problems)
    return chosen


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """The answers of pipelines: a report without comparisons, and the values to compare.

    `values` and `answers` hold an entry for each query, by pipeline, aligned with `asked`.
    """

    report: EvalReport
    values: Mapping[str, Values]
    answers: Mapping[str, Sequence[Answer]]
    asked: tuple[DatasetQuery, ...]

    def compared(self, pairs: Sequence[tuple[str, str]]) -> EvalReport:
        """The report with comparisons of these pairs of pipelines, as one family."""
        return replace(self.report, comparisons=compare(self.values, pairs))


def evaluate_pipelines(
    dataset: Dataset,
    pipelines: Sequence[PipelineSource],
    *,
    run_file: Path | None = None,
    queries: int | None = None,
    progress: OnMeasured | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
    opened: Opener = throwaway_store,
    unanswerable: Sequence[DatasetQuery] = (),
) -> EvaluationRun:
    """Measures pipelines on a dataset that has been read.

    Args:
        dataset: The dataset.
        pipelines: Paths, presets or values.
        run_file: Receives the rankings as TREC run lines.
        queries: Size of the fixed random sample of queries; None for all.
        progress: Called after every indexed document and every search.
        environ: Environment variables; `os.environ` if None.
        now: Time of all queries in epoch seconds; the present by default.
        opened: Opens the store with the documents.
        unanswerable: Queries without an answer, to measure abstention; judgements of 0 are then hard negatives.

    Raises:
        SpeckitError: E123 without a judged query, or with the problems of the run file or the store.
    """
    judged = dataset.judged()
    if not judged:
        raise SpeckitError("E123", f"no query of '{dataset.folder}' has a relevant document: nothing can be measured")
    asked = sample(judged, queries)
    if run_file is not None:
        check_run_file(run_file, dataset.keys.union(query.id for query in asked))
    report = progress or (lambda _: None)
    # everything that needs the store is read before it is closed
    with opened(dataset, pipelines, environ=environ, progress=report) as store:
        moment = time.time() if now is None else now
        answers = measure(store.memories, asked, now=moment, seed=SEED, progress=report)
        foreign = (
            measure(store.memories, unanswerable, now=moment, seed=SEED, progress=report)
            if unanswerable
            else [[] for _ in store.memories]
        )
        built = [memory.pipelines.current for memory in store.memories]
        embedder = store.memories[0].inventory.stats().embedding_model
        known = known_memories(store.memories[0])
    names = distinct([pipeline.name for pipeline in built])
    if run_file is not None:
        write_run(run_file, {name: rankings(asked, row) for name, row in zip(names, answers, strict=True)})
    judgements = [dataset.judgements[query.id] for query in asked]
    values: dict[str, Values] = {
        name: evaluate([answer.ranked(judged) for answer, judged in zip(row, judgements, strict=True)], judgements)
        for name, row in zip(names, answers, strict=True)
    }
    further = [further_figures(asked, row, judgements, known, now=moment) for row in answers]
    evaluated = EvalReport(
        dataset=dataset.name,
        documents=len(dataset.keys),
        queries=len(asked),
        no_relevant=len(dataset.queries) - len(judged),
        pipelines=tuple(
            replace(
                figures(name, pipeline.hash, store.index_s, values[name], row, asked, more, pipeline.budgets_ms),
                restraint=AbstentionScores.of(row, judgements, beside) if unanswerable else None,
            )
            for name, pipeline, row, more, beside in zip(names, built, answers, further, foreign, strict=True)
        ),
        comparisons=(),
        embedder=embedder,
        warnings=store.warnings,
    )
    return EvaluationRun(evaluated, values, dict(zip(names, answers, strict=True)), asked)


def sample(queries: tuple[DatasetQuery, ...], size: int | None) -> tuple[DatasetQuery, ...]:
    """A fixed random sample in the order of the dataset."""
    if size is None or size >= len(queries):
        return queries
    if size < 1:
        raise SpeckitError.of([out_of_range("the number of queries", size, "1 and above")])
    # rows: (size,) int64 without replacement; the fixed seed gives every pipeline and every run the same sample.
    rows = np.random.default_rng(SEED).choice(len(queries), size, replace=False)
    return tuple(queries[row] for row in np.sort(rows))


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with #2, #3 … appended to repetitions, since a pipeline may be compared with itself."""
    seen = Counter[str]()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return distinct


def rankings(queries: Sequence[DatasetQuery], answers: Sequence[Answer]) -> dict[str, Ranking]:
    """The rankings by query, as for a run file."""
    return {query.id: answer.ranking for query, answer in zip(queries, answers, strict=True)}
