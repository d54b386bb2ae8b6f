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
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from speckit_memory.config.files import written_file
from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console import completion
from speckit_memory.server.operations.evaluation.sources import (
    BY_USER,
    PIPELINE,
    Count,
    Seed,
    SeveralSources,
    chosen_sources,
    measuring,
)
from speckit_memory.server.operations.operation import Option, View, operation

if TYPE_CHECKING:
    from speckit_memory.config.pipelines.document import ConfigDocument
    from speckit_memory.evaluation.statistics.report import Report
    from speckit_memory.server.operations.command_line import CommandCall


class FittedPipeline(SeveralSources):
    source: Annotated[str, Option("The pipeline.", argument=True, metavar=PIPELINE, complete=completion.pipelines)]
    out: Annotated[Path, Option("The pipeline file to write.", metavar="FILE")]
    folds: Annotated[int, Field(strict=True, ge=2), Option("Number of folds into which queries are split.")] = 5
    seed: Seed = 20
    queries: Annotated[Count | None, Option("Only a sample of this many queries of each dataset.")] = None


class Tuning(FittedPipeline):
    parameters: Annotated[
        list[str],
        Option(
            "Search only this parameter, else all that are declared tunable.",
            command="--parameter",
            metavar="STEP.PARAM",
            complete=completion.tunables,
        ),
    ] = []
    trials: Annotated[Count, Option("Maximum number of settings that one search tries.")] = 100
    jobs: Annotated[Count, Option("Number of processes that share the work.")] = 1


@operation("tuning", "pipeline tune", one_door=BY_USER, shared=("db", "json", "verbose"))
def tune_parameters(call: CommandCall, params: Tuning) -> View:
    """Search the tunable parameters of a pipeline for the best nDCG@10.

    Writes the result as a new file. Every figure comes from queries that were not used to choose the values: from
    held-out folds, and with several datasets from each dataset left out. Values that gain nothing, or are significantly
    worse on any dataset, are rejected; the file then keeps the old ones and says so.
    """
    from speckit_memory.evaluation.tuning.tuning import tune

    sources = chosen_sources(params, call.common.db)
    document = read_source(params.source, params.out)
    with measuring("tune") as progress:
        report = tune(
            document,
            sources,
            parameters=params.parameters,
            trials=params.trials,
            folds=params.folds,
            seed=params.seed,
            queries=params.queries,
            jobs=params.jobs,
            progress=progress,
        )
    write_pipeline(params.out, document, report.used, report.heading(), report.remarks())
    return _written(report.as_report(), params.out)


class Calibration(FittedPipeline):
    false_alarms: Annotated[
        float,
        Option("Share of answerable questions that may get a warning, between 0 and 1.", metavar="RATE"),
    ] = 0.05


@operation("tuning", "pipeline calibrate", one_door=BY_USER, shared=("db", "json", "verbose"))
def calibrate_threshold(call: CommandCall, params: Calibration) -> View:
    """Fit the threshold of the step evidence_gap on judged queries.

    Writes a new file that extends this one. The threshold is the highest one at which at most the stated share of
    answerable questions gets a warning. Detection is measured on unanswerable questions: those of the other datasets,
    and the judged ones without their relevant documents.
    """
    from speckit_memory.evaluation.tuning.calibration import calibrate

    sources = chosen_sources(params, call.common.db)
    document = read_source(params.source, params.out)
    with measuring("calibrate") as progress:
        report = calibrate(
            document,
            sources,
            false_alarms=params.false_alarms,
            folds=params.folds,
            seed=params.seed,
            queries=params.queries,
            progress=progress,
        )
    write_pipeline(params.out, document, report.overrides, report.heading(), report.remarks(), extending=True)
    return _written(report.as_report(), params.out)


def _written(found: Report, out: Path) -> View:
    return View(
        reports=[replace(found, notes=[*found.notes, f"written: {out}"], data={**found.data, "file": str(out)})]
    )


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
