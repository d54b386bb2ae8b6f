"""`eval compare`: compares pipelines with a control in depth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, NamedPath, no_keep_option, shared_options
from speckit_memory.server.console.arguments.sources import pipelines_option, source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_reports

if TYPE_CHECKING:
    from speckit_memory.evaluation.comparing.compare_report import CompareReport
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


@click.command("compare")
@pipelines_option("A pipeline; the first is the control that the others are compared with.")
@click.option(
    "--flag",
    "flags",
    multiple=True,
    metavar="NAME",
    help="Compare the control with this flag open and closed; may be repeated.",
)
@click.option(
    "--run-file",
    "run_files",
    type=NamedPath(),
    multiple=True,
    help="With --qrels: compare the rankings of these TREC run files. With --dataset: write the rankings here.",
)
@click.option("--qrels", type=NamedPath(), help="Judgements for run files, as TREC lines or as a dataset's test.tsv.")
@click.option("--qrels-out", type=NamedPath(), help="Write the judgements of the queries asked as TREC lines.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="With --own: use the N-th 400 of the queries that can be made, so that a second comparison has new queries.",
)
@no_keep_option
@shared_options("db", "set", "json", "verbose")
@source_options(several=True, or_else="qrels")
def command(
    common: Common,
    sources: tuple[GroundSource, ...],
    pipelines: tuple[str, ...],
    flags: tuple[str, ...],
    run_files: tuple[Path, ...],
    qrels: Path | None,
    qrels_out: Path | None,
    queries: int | None,
    window: int,
    no_keep: bool,
) -> None:
    """Compare pipelines with a control: verdicts, agreement, segments and differences.

    The control runs twice, so that its difference from itself shows the noise. --set changes all pipelines except the
    control. A single --pipeline is compared with itself as changed by --set. --flag needs no --pipeline: the control is
    the pipeline that a search would use. Over several datasets, one sentence gives the overall verdict. The result is
    kept in the evaluation database under an id, which `eval gate --against` and `flags promote --evidence` accept.
    """
    from speckit_memory.evaluation.comparing.compare import compare_pipelines, compare_runs
    from speckit_memory.evaluation.comparing.compare_report import overall
    from speckit_memory.evaluation.statistics.report import as_document

    _check(sources, (*pipelines, *flags), run_files, qrels, qrels_out)
    if window > 1:
        sources = _in_window(sources, window)
    store = None if no_keep else settings(common.db).db
    reports: list[CompareReport] = []
    if qrels is not None:
        reports.append(compare_runs(run_files, qrels, store=store))
    for source in sources:
        with ProgressReporter(source.name) as bar:
            reports.append(
                compare_pipelines(
                    source,
                    pipelines,
                    flags=flags,
                    run_file=run_files[0] if run_files else None,
                    qrels_out=qrels_out,
                    queries=queries,
                    overrides=common.overrides,
                    store=store,
                    progress=lambda now: bar.update(now.done, now.total, now.phase),
                )
            )
    together = overall(reports) if len(reports) > 1 else []
    told = {"overall": as_document(together)} if together else {}
    shown = [report.as_report() for report in reports]
    if together:
        shown[-1] = replace(shown[-1], notes=[*shown[-1].notes, *(one.sentence for one in together)])
    show_reports([replace(one, data={**one.data, **told}) for one in shown], common)


def _in_window(sources: tuple[GroundSource, ...], window: int) -> tuple[GroundSource, ...]:
    """Selects the window of queries made of the user's memories. Raises UsageError for other sources, which have no
    windows."""
    from speckit_memory.evaluation.ground_truth.own import OwnSource

    own = [
        replace(source, window=window) for source in sources if isinstance(source, OwnSource) and not source.from_use
    ]
    if len(own) != len(sources) or not own:
        message = "--window selects among queries made of your memories, so it goes with --own alone"
        raise click.UsageError(message, click.get_current_context())
    return tuple(own)


def _check(
    sources: tuple[GroundSource, ...],
    chosen: tuple[str, ...],
    run_files: tuple[Path, ...],
    qrels: Path | None,
    qrels_out: Path | None,
) -> None:
    """Raises UsageError for options that do not go together."""
    context = click.get_current_context()
    if qrels is not None and (sources or chosen or qrels_out):
        raise click.UsageError(
            "--qrels judges run files alone; leave out --dataset, --pipeline, --flag and --qrels-out", context
        )
    if qrels is not None and not run_files:
        raise click.UsageError("--qrels needs --run-file twice", context)
    if qrels is None and len(run_files) > 1:
        raise click.UsageError("with --dataset one --run-file is written; run files are compared with --qrels", context)
    if len(sources) > 1 and (run_files or qrels_out):
        raise click.UsageError("--run-file and --qrels-out take one dataset", context)
