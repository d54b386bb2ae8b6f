"""`pipeline calibrate`: fits the threshold of the evidence gap to a rate of false alarms."""

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


@click.command("calibrate")
@click.argument("source", metavar="FILE|PRESET", shell_complete=completion.pipelines)
@click.option("--out", type=NamedPath(), required=True, metavar="FILE", help="The pipeline file to write.")
@click.option(
    "--false-alarms",
    type=float,
    default=0.05,
    show_default=True,
    metavar="RATE",
    help="Share of answerable questions that may get a warning, between 0 and 1.",
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
@shared_options("db", "json", "verbose")
@source_options(several=True)
def command(
    common: Common,
    source: str,
    sources: tuple[GroundSource, ...],
    out: Path,
    false_alarms: float,
    folds: int,
    seed: int,
    queries: int | None,
) -> None:
    """Fit the threshold of the step evidence_gap on judged queries.

    Writes a new file that extends this one. The threshold is the highest one at which at most the stated share of
    answerable questions gets a warning. Detection is measured on unanswerable questions: those of the other datasets,
    and the judged ones without their relevant documents.
    """
    check_target(out, source)
    from speckit_memory.config.pipelines.document import read
    from speckit_memory.evaluation.tuning.calibration import calibrate

    document = read(source)  # read once: the measured document is the one written, even if the file changes meanwhile
    with ProgressReporter("calibrate") as bar:
        report = calibrate(
            document,
            sources,
            false_alarms=false_alarms,
            folds=folds,
            seed=seed,
            queries=queries,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    write_pipeline(out, document, report.overrides, report.heading(), report.remarks(), extending=True)
    found = report.as_report()
    show_report(replace(found, notes=[*found.notes, f"written: {out}"], data={**found.data, "file": str(out)}), common)
