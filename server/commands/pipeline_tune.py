"""`pipeline tune`: finds better values for the parameters that are declared tunable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.pipeline_output import check_target, write_pipeline
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


@click.command("tune")
@click.argument("source", metavar="FILE|PRESET", shell_complete=completion.pipelines)
@click.option("--out", type=NamedPath(), required=True, metavar="FILE", help="The pipeline file to write.")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="STEP.PARAM",
    shell_complete=completion.tunables,
    help="Search only this parameter; may be repeated. Else all that are declared tunable.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Maximum number of settings that one search tries.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Number of folds into which queries are split.",
)
@click.option("--seed", type=click.IntRange(min=0), default=20, show_default=True, help="Seed of all random choices.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries of each dataset.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes that share the work."
)
@shared_options("db", "json", "verbose")
@source_options(several=True)
def command(
    common: Common,
    source: str,
    sources: tuple[GroundSource, ...],
    out: Path,
    parameters: tuple[str, ...],
    trials: int,
    folds: int,
    seed: int,
    queries: int | None,
    jobs: int,
) -> None:
    """Search the tunable parameters of a pipeline for the best nDCG@10.

    Writes the result as a new file. Every figure comes from queries that were not used to choose the values: from
    held-out folds, and with several datasets from each dataset left out. Values that gain nothing, or are significantly
    worse on any dataset, are rejected; the file then keeps the old ones and says so.
    """
    check_target(out, source)
    from speckit_memory.config.pipelines.document import read
    from speckit_memory.evaluation.tuning.tuning import tune

    document = read(source)  # read once: the measured document is the one written, even if the file changes meanwhile
    with ProgressReporter("tune") as bar:
        report = tune(
            document,
            sources,
            parameters=parameters,
            trials=trials,
            folds=folds,
            seed=seed,
            queries=queries,
            jobs=jobs,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    write_pipeline(out, document, report.used, report.heading(), report.remarks())
    found = report.as_report()
    show_report(replace(found, notes=[*found.notes, f"written: {out}"], data={**found.data, "file": str(out)}), common)
