"""`eval run`: measure pipelines on a dataset."""

from __future__ import annotations

from pathlib import Path

import click

from speckit_memory.server import completion
from speckit_memory.server.options import Common, NamedPath, datasets_option, shared
from speckit_memory.server.output import print_json, wrapped
from speckit_memory.server.progress import ProgressReporter
from speckit_memory.server.reports import show_report


@click.command("run")
@datasets_option
@click.option(
    "--pipeline",
    "pipelines",
    multiple=True,
    metavar="FILE|PRESET",
    shell_complete=completion.pipelines,
    help="A pipeline to measure; may be repeated to compare. Else the one that a search would use.",
)
@click.option("--run-file", type=NamedPath(), help="Write the rankings as TREC run lines.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared("set", "json")
def command(
    common: Common, datasets: tuple[Path, ...], pipelines: tuple[str, ...], run_file: Path | None, queries: int | None
) -> None:
    """Index a dataset into a throw-away store, run every query through each pipeline, report and compare."""
    if run_file is not None and len(datasets) > 1:
        raise click.UsageError("--run-file takes one dataset", click.get_current_context())
    from speckit_memory.evaluation.run import run

    reports = []
    for dataset in datasets:
        with ProgressReporter(dataset.name) as bar:
            report = run(
                dataset,
                pipelines,
                run_file=run_file,
                queries=queries,
                overrides=common.overrides,
                progress=lambda now: bar.update(now.done, now.total, now.phase),
            )
        reports.append(report)
        if not common.as_json:
            show_report(report)
            if "*" in report.as_text():
                click.echo(wrapped("* the best of its column", "  ", ""))
    if common.as_json:
        documents = [report.as_json() for report in reports]
        print_json(documents if len(documents) > 1 else documents[0])
