"""`eval ablate`: measures the contribution of each step of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


@click.command("ablate")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries of each dataset.")
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=True)
def command(common: Common, sources: tuple[GroundSource, ...], queries: int | None) -> None:
    """Measure what each step of a pipeline gains and costs, by leaving it out.

    Several datasets have equal weight in the verdict: pays, harms, no effect (within ±0.005), undecided, or not
    exercised, when leaving the step out changes no metric of any query.
    """
    from speckit_memory.evaluation.tuning.ablation import ablate

    with ProgressReporter("ablate") as bar:
        report = ablate(
            sources,
            settings(common.db, common.pipeline).pipeline,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    show_report(report.as_report(), common)
