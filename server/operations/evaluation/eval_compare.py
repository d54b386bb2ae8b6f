"""`eval compare`: compares pipelines with a control in depth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from speckit_memory.server.console import completion
from speckit_memory.server.operations.evaluation.sources import (
    BY_USER,
    PIPELINE,
    Count,
    NoKeep,
    Sample,
    SeveralSources,
    chosen_sources,
    measuring,
    usage,
)
from speckit_memory.server.operations.operation import Option, View, operation

if TYPE_CHECKING:
    from speckit_memory.evaluation.comparing.compare_report import CompareReport
    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.server.operations.command_line import CommandCall


class ComparedPipelines(SeveralSources):
    pipelines: Annotated[
        list[str],
        Option(
            "A pipeline; the first is the control that the others are compared with.",
            command="--pipeline",
            metavar=PIPELINE,
            complete=completion.pipelines,
        ),
    ] = []
    flags: Annotated[
        list[str], Option("Compare the control with this flag open and closed.", command="--flag", metavar="NAME")
    ] = []
    run_files: Annotated[
        list[Path],
        Option(
            "With --qrels: compare the rankings of these TREC run files. With --dataset: write the rankings here.",
            command="--run-file",
        ),
    ] = []
    qrels: Annotated[Path | None, Option("Judgements for run files, as TREC lines or as a dataset's test.tsv.")] = None
    qrels_out: Annotated[Path | None, Option("Write the judgements of the queries asked as TREC lines.")] = None
    queries: Sample = None
    window: Annotated[
        Count,
        Option(
            "With --own: use the N-th 400 of the queries that can be made; a second comparison then has new queries.",
            metavar="N",
        ),
    ] = 1
    no_keep: NoKeep = False


@operation("tuning", "eval compare", one_door=BY_USER, shared=("db", "set", "json", "verbose"))
def compare(call: CommandCall, params: ComparedPipelines) -> View:
    """Compare pipelines with a control: verdicts, agreement, segments and differences.

    The control runs twice, so that its difference from itself shows the noise. --set changes all pipelines except the
    control. A single --pipeline is compared with itself as changed by --set. --flag needs no --pipeline: the control is
    the pipeline that a search would use. Over several datasets, one sentence gives the overall verdict. The result is
    kept in the evaluation database under an id, which `eval gate --against` and `flags promote --evidence` accept.
    """
    from speckit_memory.evaluation.comparing.compare import compare_pipelines, compare_runs
    from speckit_memory.evaluation.comparing.compare_report import overall
    from speckit_memory.evaluation.statistics.report import as_document

    sources = chosen_sources(params, call.common.db, required=params.qrels is None)
    _check(params, len(sources))
    if params.window > 1:
        sources = _in_window(sources, params.window)
    store = None if params.no_keep else call.config.db
    reports: list[CompareReport] = []
    if params.qrels is not None:
        reports.append(compare_runs(params.run_files, params.qrels, store=store))
    for source in sources:
        with measuring(source.name) as progress:
            reports.append(
                compare_pipelines(
                    source,
                    params.pipelines,
                    flags=params.flags,
                    run_file=params.run_files[0] if params.run_files else None,
                    qrels_out=params.qrels_out,
                    queries=params.queries,
                    overrides=call.common.overrides,
                    store=store,
                    progress=progress,
                )
            )
    together = overall(reports) if len(reports) > 1 else []
    told = {"overall": as_document(together)} if together else {}
    shown = [report.as_report() for report in reports]
    if together:
        shown[-1] = replace(shown[-1], notes=[*shown[-1].notes, *(one.sentence for one in together)])
    return View(reports=[replace(one, data={**one.data, **told}) for one in shown])


def _in_window(sources: tuple[GroundSource, ...], window: int) -> tuple[GroundSource, ...]:
    """Selects the window of queries made of the user's memories. Raises UsageError for other sources, which have no
    windows."""
    from speckit_memory.evaluation.ground_truth.own import OwnSource

    own = [
        replace(source, window=window) for source in sources if isinstance(source, OwnSource) and not source.from_use
    ]
    if len(own) != len(sources) or not own:
        raise usage("--window selects among queries made of your memories, so it goes with --own alone")
    return tuple(own)


def _check(params: ComparedPipelines, sources: int) -> None:
    """Raises UsageError for options that do not go together."""
    runs, qrels = len(params.run_files), params.qrels is not None
    if qrels and (sources or params.pipelines or params.flags or params.qrels_out):
        raise usage("--qrels judges run files alone; leave out --dataset, --pipeline, --flag and --qrels-out")
    if qrels and not runs:
        raise usage("--qrels needs --run-file twice")
    if not qrels and runs > 1:
        raise usage("with --dataset one --run-file is written; run files are compared with --qrels")
    if sources > 1 and (runs or params.qrels_out):
        raise usage("--run-file and --qrels-out take one dataset")
