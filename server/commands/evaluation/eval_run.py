"""`eval run`: measures pipelines on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.arguments.sources import pipelines_option, source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_reports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.statistics.report import Report


@click.command("run")
@pipelines_option("A pipeline to measure; may be repeated to compare. Else the one that a search would use.")
@click.option("--run-file", type=NamedPath(), help="Write the rankings as TREC run lines.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared_options("db", "set", "json", "verbose")
@source_options(several=True)
def command(
    common: Common,
    sources: tuple[GroundSource, ...],
    pipelines: tuple[str, ...],
    run_file: Path | None,
    queries: int | None,
) -> None:
    """Run every query of a dataset through each pipeline, report and compare.

    The dataset is indexed into a temporary store. With --own no dataset is needed: queries made of your own memories
    are asked, and nothing is recorded in their store.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        sources: Where queries and judgements come from.
        pipelines: Pipelines to measure; none for the one that a search would use.
        run_file: File for the rankings, as TREC run lines; None to write none.
        queries: Size of a sample of the queries; None for all.
    """
    if run_file is not None and len(sources) > 1:
        raise click.UsageError("--run-file takes one dataset", click.get_current_context())
    from speckit_memory.evaluation.running.run import run

    def measured() -> Iterator[Report]:
        for source in sources:
            with ProgressReporter(source.name) as bar:
                report = run(
                    source,
                    pipelines,
                    run_file=run_file,
                    queries=queries,
                    overrides=common.overrides,
                    progress=lambda now: bar.update(now.done, now.total, now.phase),
                )
            yield report.as_report()

    show_reports(measured(), common)
