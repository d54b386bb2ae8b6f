"""Measures pipelines on a dataset: `eval run`.

The dataset is indexed once into a throw-away store, all pipelines search that store, and every query goes through the
same entry as in production.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from speckit_memory.config.settings import settings
from speckit_memory.engine import assembly
from speckit_memory.engine.pipelines import check
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparison import Values, compare
from speckit_memory.evaluation.dataset import Dataset, DatasetQuery, read
from speckit_memory.evaluation.measure import Answer, Report, measure
from speckit_memory.evaluation.metrics import evaluate
from speckit_memory.evaluation.report import EvalReport, figures
from speckit_memory.evaluation.throwaway import throwaway_store
from speckit_memory.evaluation.trec import Ranking, check_run_file, write_run
from speckit_memory.pipeline.loading import PipelineSource, load

SEED = 20
"""Seeds the sample of queries, their order, and the draws of the tests, so that a report can be repeated."""


def run(
    dataset: Path,
    pipelines: Sequence[PipelineSource] = (),
    *,
    run_file: Path | None = None,
    queries: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Report | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
) -> EvalReport:
    """Measures each pipeline on a dataset and compares all pairs on nDCG@10 and MRR@5.

    `pipelines` are paths, presets or values; none means the one that a search would use. `queries` limits the run to a
    random sample of the queries, always the same one; `overrides` maps "step.parameter" to a YAML value, for all
    pipelines. `run_file` receives the rankings as TREC run lines. `now` (epoch seconds) is the time at which all
    queries are asked, by default the present. `progress` is called after every document and search. Raises
    SpeckitError with every problem of the pipelines, or else of the dataset.
    """
    environ = os.environ if environ is None else environ
    wanted = pipelines or [settings(environ=environ).pipeline]
    chosen = [load(source, environ, overrides, assembly.registry(environ).flag_files) for source in wanted]
    if problems := [problem for whole in chosen for problem in check(whole, environ)]:
        raise SpeckitError.of(problems)
    report, values = evaluate_pipelines(
        read(dataset), chosen, run_file=run_file, queries=queries,
        progress=progress, environ=environ, now=now,
    )  # fmt: skip
    return replace(report, comparisons=compare(values, list(combinations(values, 2)), seed=SEED))


def evaluate_pipelines(
    dataset: Dataset,
    pipelines: Sequence[PipelineSource],
    *,
    run_file: Path | None = None,
    queries: int | None = None,
    progress: Report | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
) -> tuple[EvalReport, dict[str, Values]]:
    """Measures pipelines on a dataset that has been read: a report without comparisons, and what to compare.

    The values are those of each query, by pipeline.
    """
    judged = dataset.judged()
    if not judged:
        raise SpeckitError("E123", f"no query of '{dataset.folder}' has a relevant document: nothing can be measured")
    asked = _sample(judged, queries)
    if run_file is not None:
        check_run_file(run_file, dataset.keys.union(query.id for query in asked))
    report = progress or (lambda _: None)
    with throwaway_store(dataset, pipelines, environ=environ, progress=report) as store:
        moment = time.time() if now is None else now
        answers = measure(store.memories, asked, now=moment, seed=SEED, progress=report)
        built = [memory.pipeline for memory in store.memories]
        embedder = store.memories[0].stats().embedding_model
    names = _distinct([pipeline.name for pipeline in built])
    if run_file is not None:
        write_run(run_file, {name: _rankings(asked, row) for name, row in zip(names, answers, strict=True)})
    judgements = [dataset.judgements[query.id] for query in asked]
    values: dict[str, Values] = {
        name: evaluate([answer.keys for answer in row], judgements) for name, row in zip(names, answers, strict=True)
    }
    evaluated = EvalReport(
        dataset=dataset.name,
        documents=len(dataset.keys),
        queries=len(asked),
        no_relevant=len(dataset.queries) - len(judged),
        pipelines=tuple(
            figures(name, pipeline.hash, store.index_s, values[name], row, asked)
            for name, pipeline, row in zip(names, built, answers, strict=True)
        ),
        comparisons=(),
        embedder=embedder,
        warnings=store.warnings,
    )
    return evaluated, values


def _sample(queries: tuple[DatasetQuery, ...], size: int | None) -> tuple[DatasetQuery, ...]:
    """A random sample in the order of the dataset; the same one each time."""
    if size is None or size >= len(queries):
        return queries
    if size < 1:
        raise SpeckitError("E032", f"the number of queries is {size}; accepted: 1 and above")
    rows = np.random.default_rng(SEED).choice(len(queries), size, replace=False)
    return tuple(queries[row] for row in np.sort(rows))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with #2, #3 … after those that have come before: a pipeline may well be compared with itself."""
    seen = Counter[str]()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return distinct


def _rankings(queries: Sequence[DatasetQuery], answers: Sequence[Answer]) -> dict[str, Ranking]:
    return {query.id: answer.ranking for query, answer in zip(queries, answers, strict=True)}
