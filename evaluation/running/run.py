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
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.pipelines import check
from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.datasets.trec import Ranking, check_run_file, write_run
from speckit_memory.evaluation.ground_truth.ground import DatasetSource, GroundSource, GroundTruth
from speckit_memory.evaluation.measuring.measure import Answer, OnMeasured, measure
from speckit_memory.evaluation.running.further_report import further_figures, known_memories
from speckit_memory.evaluation.running.report import AbstentionScores, EvalReport, figures
from speckit_memory.evaluation.statistics.comparison import Values, compare
from speckit_memory.evaluation.statistics.metrics import evaluate
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource, load

SEED = 20
"""Seeds the sample of queries, their order, and the draws of the tests, so that a report can be repeated."""


class EvaluationOptions(TypedDict, total=False):
    """What every evaluation takes by keyword.

    `queries` is the size of the fixed random sample of queries of each source, None for all. `progress` is called after
    every indexed document and every search. `environ` holds environment variables, `os.environ` by default. `now` is
    the time of all queries in epoch seconds, the present by default.
    """

    queries: int | None
    progress: OnMeasured | None
    environ: Mapping[str, str] | None
    now: float | None


def run(
    dataset: Path | GroundSource,
    pipelines: Sequence[PipelineSource] = (),
    *,
    run_file: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> EvalReport:
    """Measures each pipeline on a dataset or another source, and compares all pairs on nDCG@10 and MRR@5.

    Args:
        dataset: The folder of a dataset, or another source.
        pipelines: Paths, presets or values; none for the pipeline that a search would use.
        run_file: Receives the rankings as TREC run lines.
        overrides: YAML values by "step.parameter", applied to all pipelines.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: With every problem of the pipelines, or else of the dataset.
    """
    evaluation = Evaluation(dataset, **options)
    chosen = evaluation.load(pipelines, overrides)
    measured = evaluation.measure(chosen, run_file=run_file, abstention=True)
    # combinations keeps the given order, so every pair is (earlier, later) and a comparison reads "later minus
    # earlier".
    return measured.compared(list(combinations(measured.values, 2)))


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

    `values` and `answers` hold an entry for each query, by pipeline, aligned with `asked`; the queries are of `ground`.
    """

    ground: GroundTruth

    report: EvalReport
    values: Mapping[str, Values]
    answers: Mapping[str, Sequence[Answer]]
    asked: tuple[DatasetQuery, ...]

    def compared(self, pairs: Sequence[tuple[str, str]]) -> EvalReport:
        """The report with comparisons of these pairs of pipelines, as one family."""
        return replace(self.report, comparisons=compare(self.values, pairs))


class Evaluation:
    """The steps that all evaluations share: load pipelines, read the sources, and ask their queries.

    The sources are read once, when they are first needed, so that problems of pipelines are reported before.
    """

    def __init__(
        self,
        *sources: Path | GroundSource,
        queries: int | None = None,
        progress: OnMeasured | None = None,
        environ: Mapping[str, str] | None = None,
        now: float | None = None,
    ) -> None:
        """`sources` are datasets, given as folders, or others; see `EvaluationOptions`."""
        self.environ = os.environ if environ is None else environ
        self.progress = progress or (lambda _: None)
        self.begun = time.time()
        self._sources = sources
        self._queries = queries
        self._now = now

    @property
    def now(self) -> float:
        """The time of the queries in epoch seconds. The present is after the documents were indexed."""
        return time.time() if self._now is None else self._now

    @cached_property
    def grounds(self) -> list[GroundTruth]:
        """The sources.

        Raises SpeckitError for a malformed dataset, one without a judged query (E123), and two with one name (E030):
        their figures could not be distinguished, and a dataset given twice would be held out from itself.
        """
        grounds = [(DatasetSource(one) if isinstance(one, Path) else one).ground(self.environ) for one in self._sources]
        sets = [ground.dataset for ground in grounds]
        for place, dataset in enumerate(sets):
            if not dataset.judged():
                raise SpeckitError(
                    "E123", f"no query of '{dataset.folder}' has a relevant document: nothing can be measured"
                )
            if dataset.name in [other.name for other in sets[:place]]:
                raise SpeckitError("E030", f"two datasets are named '{dataset.name}'", hint="Give each dataset once.")
        return grounds

    def load(
        self, pipelines: Sequence[PipelineSource] = (), overrides: Mapping[str, str] | None = None
    ) -> list[Effective]:
        """Loads pipelines, see `load_pipelines`."""
        return load_pipelines(pipelines, overrides, self.environ)

    def sample(self, ground: GroundTruth, seed: int = SEED) -> tuple[DatasetQuery, ...]:
        """The judged queries of a source, or a fixed random sample of them in the order of the dataset."""
        judged, size = ground.dataset.judged(), self._queries
        if size is None or size >= len(judged):
            return judged
        if size < 1:
            raise SpeckitError.of([out_of_range("the number of queries", size, "1 and above")])
        # rows: (size,) int64 without replacement; the fixed seed gives every pipeline and every run the same sample.
        rows = np.random.default_rng(seed).choice(len(judged), size, replace=False)
        return tuple(judged[row] for row in np.sort(rows))

    def measure(
        self,
        pipelines: Sequence[PipelineSource],
        place: int = 0,
        *,
        run_file: Path | None = None,
        abstention: bool = False,
    ) -> EvaluationRun:
        """Measures pipelines on one of the sources.

        Args:
            pipelines: Paths, presets or values.
            place: The index of the source.
            run_file: Receives the rankings as TREC run lines.
            abstention: Whether the unanswerable queries are asked too; judgements of 0 are then hard negatives.

        Raises:
            SpeckitError: With the problems of the sources, the run file or the store.
        """
        ground = self.grounds[place]
        dataset, asked = ground.dataset, self.sample(ground)
        unanswerable = ground.unanswerable if abstention else ()
        if run_file is not None:
            check_run_file(run_file, dataset.keys.union(query.id for query in asked))
        # everything that needs the store is read before it is closed
        with ground.opened(dataset, pipelines, environ=self.environ, progress=self.progress) as store:
            moment = self.now
            answers = measure(store.memories, asked, now=moment, seed=SEED, progress=self.progress)
            foreign = (
                measure(store.memories, unanswerable, now=moment, seed=SEED, progress=self.progress)
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
            no_relevant=len(dataset.queries) - len(dataset.judged()),
            pipelines=tuple(
                replace(
                    figures(name, pipeline.hash, store.index_s, values[name], row, asked, more, pipeline.budgets_ms),
                    restraint=AbstentionScores.of(row, judgements, beside) if unanswerable else None,
                )
                for name, pipeline, row, more, beside in zip(names, built, answers, further, foreign, strict=True)
            ),
            comparisons=(),
            embedder=embedder,
            warnings=(*store.warnings, *ground.warnings),
        )
        return EvaluationRun(ground, evaluated, values, dict(zip(names, answers, strict=True)), asked)


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
