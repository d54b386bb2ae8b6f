"""`pipeline tune` and `pipeline calibrate`: fit values of a pipeline to judged queries, and write a new file."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.files import written_file
from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.config.pipelines.document import ConfigDocument
    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.statistics.report import Report

_source = click.argument("source", metavar="FILE|PRESET", shell_complete=completion.pipelines)
_out = click.option("--out", type=NamedPath(), required=True, metavar="FILE", help="The pipeline file to write.")
_folds = click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Number of folds into which queries are split.",
)
_seed = click.option(
    "--seed", type=click.IntRange(min=0), default=20, show_default=True, help="Seed of all random choices."
)
_queries = click.option(
    "--queries", type=click.IntRange(min=1), help="Only a sample of this many queries of each dataset."
)


@click.command("tune")
@_source
@_out
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
@_folds
@_seed
@_queries
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes that share the work."
)
@shared_options("db", "json", "verbose")
@source_options(several=True)
def tune_command(
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
    from speckit_memory.evaluation.tuning.tuning import tune

    document = read_source(source, out)
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
    _show(report.as_report(), out, common)


@click.command("calibrate")
@_source
@_out
@click.option(
    "--false-alarms",
    type=float,
    default=0.05,
    show_default=True,
    metavar="RATE",
    help="Share of answerable questions that may get a warning, between 0 and 1.",
)
@_folds
@_seed
@_queries
@shared_options("db", "json", "verbose")
@source_options(several=True)
def calibrate_command(
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
    from speckit_memory.evaluation.tuning.calibration import calibrate

    document = read_source(source, out)
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
    _show(report.as_report(), out, common)


def _show(found: Report, out: Path, common: Common) -> None:
    show_report(replace(found, notes=[*found.notes, f"written: {out}"], data={**found.data, "file": str(out)}), common)


_MADE = re.compile(r"^# Made on \d{4}-\d\d-\d\d by:$", re.MULTILINE)


def read_source(source: str, file: Path) -> ConfigDocument:
    """Reads the pipeline: the one that is measured is the one that is written, even if the file changes meanwhile.

    Raises SpeckitError (E014) if it may not be written to the file: only files written by a command, or the pipeline's
    own source, may be overwritten.
    """
    from speckit_memory.config.pipelines.document import read

    itself = is_there(file) and is_there(Path(source)) and file.samefile(source)
    written_file.check_target(file, lambda beginning: itself or _MADE.search(beginning) is not None)
    return read(source)


def write_pipeline(
    file: Path,
    source: ConfigDocument,
    overrides: Mapping[str, str],
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
    *,
    extending: bool = False,
) -> None:
    """Writes a pipeline with overrides applied, named after the file.

    Args:
        file: The file to write.
        source: The pipeline.
        overrides: New values by "STEP.PARAM".
        heading: Comment lines at the top, before the command.
        remarks: Comment lines by the name of the value they precede.
        extending: Whether the file only extends the source with the overrides; ignored if it replaces the source.

    Raises:
        SpeckitError: E014 if the file cannot be written.
    """
    from speckit_memory.engine.pipelines.pipelines import extension, pipeline_text_with

    origin = [f"Made on {time.strftime('%Y-%m-%d')} by:", f"  speckit-memory {shlex.join(sys.argv[1:])}"]
    # compare by file, not by name: both may be reached by different paths
    itself = is_there(file) and is_there(Path(source.source)) and file.samefile(source.source)
    write = extension if extending and not itself else pipeline_text_with
    text = write(source, os.environ, overrides, file=file, heading=[*heading, *origin], remarks=remarks)
    try:
        with written_file.written(file) as stream:
            stream.write(text)
    except OSError as error:
        raise SpeckitError("E014", f"'{file}' cannot be written: {error.strerror}") from error
