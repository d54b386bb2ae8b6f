"""`eval gate`: tests whether a pipeline is worse, by the exit status."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import Field

from speckit_memory.config.files.written_file import check_target, written
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.output import wrap_text
from speckit_memory.server.operations.evaluation.sources import (
    BY_USER,
    NoKeep,
    OneSource,
    Sample,
    chosen_sources,
    measuring,
    usage,
)
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.operation import Option, View, operation

if TYPE_CHECKING:
    from speckit_memory.evaluation.comparing.acceptance import GoodEnough
    from speckit_memory.evaluation.comparing.gate import GateResult
    from speckit_memory.evaluation.experiments.flag_steps import FlagVerdict
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.operations.command_line import CommandCall

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The file to which GitHub Actions wants the summary of a step added, as Markdown."""
_TITLE = "### Retrieval gate"


class GatedPipeline(OneSource):
    against: Annotated[
        str | None,
        Option(
            "The reference: a file or preset, a stored evaluation, or the pipeline as of a git revision.",
            metavar="FILE|PRESET|ID|REV[:PATH]",
        ),
    ] = None
    max_loss: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Option(
            "Exit with 1 unless a loss of this much (0.01 is a point) is ruled out, one-sided with 95 % confidence.",
            metavar="LOSS",
        ),
    ] = None
    good_enough: Annotated[
        Flag,
        Option("Judge by absolute criteria instead: MRR@5, constitutional documents, documents of the last two days."),
    ] = False
    markdown: Annotated[Path | None, Option("Write a short summary for a pull request.", metavar="FILE")] = None
    queries: Sample = None
    no_keep: NoKeep = False


@operation("tuning", "eval gate", one_door=BY_USER, shared=("db", "pipeline", "set", "json", "verbose"))
def judge_pipeline(call: CommandCall, params: GatedPipeline) -> View:
    """Exit with 1 when --pipeline is significantly worse than --against, else with 0.

    The report says how large a loss can still hide. --good-enough needs no other pipeline: it exits with 1 when a
    criterion is missed, and with 3 when none is missed but one cannot be measured yet, as in a workspace in which all
    memories are new. For each active flag of the pipeline, the stored comparisons are tested against its criterion and
    reported as go or no-go; this does not change the status. --set changes the gated pipeline alone. The summary is
    also added to $GITHUB_STEP_SUMMARY if that is set.
    """
    from speckit_memory.evaluation.comparing.acceptance import good_enough
    from speckit_memory.evaluation.comparing.gate import gate
    from speckit_memory.evaluation.statistics.report import as_document
    from speckit_memory.server.reports.markdown import markdown

    common, against = call.common, params.against
    if params.good_enough == (against is not None) or (params.good_enough and params.max_loss):
        raise usage("give either --against, or --good-enough, which excludes --against and --max-loss")
    if params.markdown is not None:
        check_target(params.markdown, lambda beginning: not beginning or beginning.startswith(_TITLE), "the summary")
    (source,) = chosen_sources(params, common.db)
    found: GateResult | GoodEnough
    with measuring(source.name) as progress:
        if against is None:
            found = good_enough(
                source, common.pipeline, queries=params.queries, overrides=common.overrides, progress=progress
            )
        else:
            found = gate(
                source,
                common.pipeline,
                against,
                store=call.config.db,
                keep=not params.no_keep,
                max_loss=params.max_loss,
                queries=params.queries,
                overrides=common.overrides,
                progress=progress,
            )
    report = found.as_report()
    _summaries(markdown(report), params.markdown)
    flags = _flags(common)
    notes = [*report.notes, *(f"flag {one.sentence}" for one in flags)]
    report = replace(report, notes=notes, data={**report.data, "flags": as_document(flags)})
    return View(reports=[report], status=found.status)


def _flags(common: Common) -> list[FlagVerdict]:
    """The verdicts on the active flags of the gated pipeline, if there is an evaluation database next to the store."""
    from speckit_memory.engine import components
    from speckit_memory.evaluation.experiments.flag_steps import flag_verdicts
    from speckit_memory.memory.store.evaluation.database import read_if_there
    from speckit_memory.pipeline.configuration.loading import load

    config = settings(common.db, common.pipeline)
    registry = components.registry(config.environ, config.root)
    whole = load(config.pipeline, config.environ_of_root, common.overrides, registry.flag_files)
    try:
        flags = whole.flags.values()
        return read_if_there(config.db, lambda database: flag_verdicts(whole, registry, flags, database)) or []
    except SpeckitError as error:  # the verdict of the gate is measured and does not depend on stored evaluations
        warning = f"warning: no flag is tested against its criterion: {error.problems[0].message}"
        click.echo(wrap_text(warning, stream=sys.stderr), err=True)
        return []


def _summaries(text: str, markdown: Path | None) -> None:
    """Writes the requested file, and appends to the one of GitHub Actions."""
    summary = os.environ.get(SUMMARY_VARIABLE)
    try:
        if markdown is not None:
            with written(markdown) as file:
                file.write(text)
        if summary:
            with Path(summary).open("a", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        named = error.filename or markdown
        raise SpeckitError("E014", f"the summary '{named}' cannot be written: {error.strerror}") from error
