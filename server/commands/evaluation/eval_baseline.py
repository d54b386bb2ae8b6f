"""`eval baseline`: measures what a pipeline adds to plain BM25."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, no_keep_option, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


@click.command("baseline")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@no_keep_option
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=False)
def command(common: Common, sources: tuple[GroundSource, ...], queries: int | None, no_keep: bool) -> None:
    """Compare a pipeline with BM25 alone, and say how much more effort is due.

    The decision rests on the share of the pipeline's MRR@5 that BM25 reaches: 80 % or more pause, 50 to 80 % proceed,
    less full effort. The report says so when the queries are too few to decide.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        sources: Where queries and judgements come from.
        queries: Size of a sample of the queries; None for all.
        no_keep: Whether nothing is stored in the evaluation database.
    """
    from speckit_memory.evaluation.comparing.baseline import baseline

    (source,) = sources
    with ProgressReporter(source.name) as bar:
        found = baseline(
            source,
            common.pipeline,
            store=None if no_keep else settings(common.db).db,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    show_report(found.as_report(), common)
