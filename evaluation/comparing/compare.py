"""`eval compare`: compares pipelines with a control in depth, on datasets, the user's own memories or run files."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Unpack

from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.comparing.contrast import Side, contrast
from speckit_memory.evaluation.comparing.storage import store_report
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.datasets.trec import (
    check_qrels_file,
    check_run_file,
    read_qrels,
    read_runs,
    write_qrels,
    write_run,
)
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.running.run import (
    Evaluation,
    EvaluationOptions,
    EvaluationRun,
    distinct,
    rankings,
)
from speckit_memory.evaluation.statistics.comparison import compare, without_losses
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.configuration.variants import either_way, waiting_flags

KIND = "compare"


def compare_pipelines(
    source: GroundSource,
    pipelines: Sequence[PipelineSource],
    *,
    flags: Sequence[str] = (),
    run_file: Path | None = None,
    qrels_out: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    store: Path | None = None,
    **options: Unpack[EvaluationOptions],
) -> CompareReport:
    """Measures the first pipeline, the control, twice and each other pipeline once; all answer in random order.

    The difference between the two runs of the control is the noise floor. A comparison with all `flags` closed and
    opened in turn is evidence for their promotion.

    Args:
        source: Dataset or other source to measure on.
        pipelines: Paths, presets or values, the control first. With `flags` alone, the control is the pipeline that a
            search would use. A single pipeline with `overrides` is compared with itself as overridden.
        flags: Each adds one pipeline: the control with that flag open. All of them are closed in the control.
        run_file: Receives the rankings as TREC run lines.
        qrels_out: Receives the judgements as TREC qrels.
        overrides: YAML values by "step.parameter", applied to every pipeline except the control.
        store: Store next to which the report is kept; None keeps it nowhere.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: E030 for fewer than two pipelines, E120 for an unknown flag, or with every problem of the
            pipelines or the dataset.
    """
    evaluation = Evaluation(source, **options)
    named = pipelines or ([settings(environ=evaluation.environ).pipeline] if flags else [])
    # a single pipeline with overrides is its own control
    wanted = [*named, *named] if len(named) == 1 and overrides else named
    if len(wanted) + len(flags) < 2:
        hint = "The first is the control, the others are compared with it."
        message = f"a comparison takes two pipelines; found {len(wanted)}"
        actions = ("give --pipeline twice", "give --set with one", "give --flag")
        raise SpeckitError("E030", message, hint=hint, actions=actions)
    # overrides apply to the variants alone
    [control] = evaluation.load(wanted[:1])
    others = evaluation.load(wanted[1:], overrides) if wanted[1:] else []
    control, opened = with_and_without(control, flags)
    others += evaluation.load(opened, overrides) if opened else []
    dataset = evaluation.grounds[0].dataset
    # check the output files before measuring, which may take an hour
    ids = dataset.keys.union(query.id for query in dataset.queries)
    if run_file is not None:
        check_run_file(run_file, ids)
    if qrels_out is not None:
        check_qrels_file(qrels_out, ids)
    measured = evaluation.measure([control, *others, control], abstention=True)
    if run_file is not None:
        *compared, _ = measured.answers.items()
        write_run(run_file, {name: rankings(measured.asked, row) for name, row in compared})
    if qrels_out is not None:
        write_qrels(qrels_out, {query.id: dataset.judgements[query.id] for query in measured.asked})
    report = report_on(measured, kind=KIND, at=evaluation.begun)
    # warn, rather than refuse: a small sample may be intended
    few = _too_few(control, flags, len(report.queries))
    return store_report(replace(report, warnings=(*report.warnings, *few)), store)


def _too_few(control: Effective, flags: Sequence[str], queries: int) -> Iterator[str]:
    """A warning for each flag whose criterion needs more than `queries` queries."""
    for name in flags:
        needed = max((condition.queries for condition in control.flags[name].criterion), default=0)
        if queries < needed:
            yield f"{queries:,} queries are too few as evidence for {name}, whose criterion needs {needed:,}"


def with_and_without(control: Effective, flags: Sequence[str]) -> tuple[Effective, list[Effective]]:
    """The pipeline with all these flags closed, and one pipeline with each of them open. Raises SpeckitError (E120)."""
    waiting = waiting_flags(control)
    problems = [
        Problem("E120", f"no step of '{control.name}' waits for the flag '{name}'; {nearest(name, waiting)}")
        for name in flags
        if name not in waiting
    ]
    if problems:
        raise SpeckitError.of(problems)
    for name in flags:
        control, _ = either_way(control, name)
    return control, [replace(either_way(control, name)[1], name=f"{control.name} with {name}") for name in flags]


def report_on(measured: EvaluationRun, *, kind: str, at: float) -> CompareReport:
    """The report on measured pipelines; the first is the control, the last is the control run a second time.

    `kind` is the command that is recorded with the report, `at` the time of the measurement in epoch seconds.
    """
    names = list(measured.values)
    control, *variants, again = names
    asked = measured.asked
    sides = {name: _side(measured, name) for name in names}
    evaluated = measured.compared([(control, name) for name in variants])
    return CompareReport(
        kind=kind,
        at=at,
        dataset=evaluated.dataset,
        digest=measured.ground.digest,
        documents=evaluated.documents,
        queries=tuple(query.id for query in asked),
        no_relevant=evaluated.no_relevant,
        pipelines=tuple(map(as_document, evaluated.pipelines[:-1])),
        comparisons=without_losses(evaluated.comparisons) if measured.ground.by_use else evaluated.comparisons,
        noise=contrast(asked, sides[control], sides[again]),
        contrasts=tuple(contrast(asked, sides[control], sides[name]) for name in variants),
        values={name: measured.values[name] for name in names[:-1]},
        times={name: [answer.latency_ms for answer in measured.answers[name]] for name in names[:-1]},
        warnings=tuple(replace(evaluated, pipelines=evaluated.pipelines[:-1]).all_warnings()),
    )


def compare_runs(run_files: Sequence[Path], qrels: Path, *, store: Path | None = None) -> CompareReport:
    """Compares the rankings of all tags in TREC run files by judgements alone; the first tag is the control.

    Queries without a relevant document are left out and counted; a query that a run does not answer counts as 0 for
    that run. The report is kept next to `store`; None keeps it nowhere. Raises SpeckitError.
    """
    judgements = read_qrels(qrels)
    runs = [run for file in run_files for run in read_runs(file).items()]
    if len(runs) < 2:
        raise SpeckitError(
            "E030", f"a comparison takes two runs; found {len(runs)}", actions=("give another run file",)
        )
    queries = [query for query, judged in judgements.items() if relevant(judged)]
    grades = [judgements[query] for query in queries]
    asked = [DatasetQuery(query, "") for query in queries]
    sides: list[Side] = []
    warnings: list[str] = []
    for name, (_, found) in zip(distinct([tag for tag, _ in runs]), runs, strict=True):
        rows = [found.get(query, ()) for query in queries]
        sides.append(Side(name, rows, evaluate([[key for key, _ in row] for row in rows], grades)))
        if silent := sum(query not in found for query in queries):
            warnings.append(f"{name} has no answer to {silent:,} of {len(queries):,} judged queries; they count as 0")
        if foreign := sum(query not in judgements for query in found):
            warnings.append(f"{name} holds {foreign:,} queries that are not judged; they are left out")
    values = {side.name: side.values for side in sides}
    report = CompareReport(
        kind=KIND,
        at=time.time(),
        dataset=qrels.name,
        digest=sha256(json.dumps(judgements, sort_keys=True).encode()).hexdigest()[:16],
        documents=None,
        queries=tuple(queries),
        no_relevant=len(judgements) - len(queries),
        pipelines=tuple(
            {"name": side.name, "hash": "", "metrics": {m: round(float(v.mean()), 6) for m, v in side.values.items()}}
            for side in sides
        ),
        comparisons=compare(values, [(sides[0].name, side.name) for side in sides[1:]]),
        noise=None,
        contrasts=tuple(contrast(asked, sides[0], side) for side in sides[1:]),
        values=values,
        warnings=tuple(warnings),
    )
    return store_report(report, store)


def _side(measured: EvaluationRun, name: str) -> Side:
    answers = measured.answers[name]
    return Side(name, [answer.ranking for answer in answers], measured.values[name], answers)
