"""`eval gate`: tests whether a pipeline is worse, by the exit status."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.files.written_file import check_target, written
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common, NamedPath, no_keep_option, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.output import wrap_text
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.comparing.acceptance import GoodEnough
    from speckit_memory.evaluation.comparing.gate import GateResult
    from speckit_memory.evaluation.experiments.flag_steps import FlagVerdict
    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.measuring.measure import EvaluationProgress

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The file to which GitHub Actions wants the summary of a step added, as Markdown."""
_TITLE = "### Retrieval gate"


@click.command("gate")
@click.option(
    "--against",
    metavar="FILE|PRESET|ID|REV[:PATH]",
    help="The reference: a file or preset, a stored evaluation, or the pipeline as of a git revision.",
)
@click.option(
    "--max-loss",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="LOSS",
    help="Exit with 1 unless a loss of this much (0.01 is a point) is ruled out, one-sided with 95 % confidence.",
)
@click.option(
    "--good-enough",
    is_flag=True,
    help="Judge by absolute criteria instead: MRR@5, constitutional documents, documents of the last two days.",
)
@click.option("--markdown", type=NamedPath(), metavar="FILE", help="Write a short summary for a pull request.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@no_keep_option
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=False)
def command(
    common: Common,
    sources: tuple[GroundSource, ...],
    against: str | None,
    max_loss: float | None,
    good_enough: bool,
    markdown: Path | None,
    queries: int | None,
    no_keep: bool,
) -> int:
    """Exit with 1 when --pipeline is significantly worse than --against, else with 0.

    The report says how large a loss can still hide. --good-enough needs no other pipeline: it exits with 1 when a
    criterion is missed, and with 3 when none is missed but one cannot be measured yet, as in a workspace in which all
    memories are new. For each active flag of the pipeline, the stored comparisons are tested against its criterion and
    reported as go or no-go; this does not change the status. --set changes the gated pipeline alone. The summary is
    also added to $GITHUB_STEP_SUMMARY if that is set.
    """
    from speckit_memory.evaluation.comparing.acceptance import good_enough as judged
    from speckit_memory.evaluation.comparing.gate import gate
    from speckit_memory.evaluation.statistics.report import as_document
    from speckit_memory.server.reports.markdown import markdown as markdown_of

    if good_enough == (against is not None) or (good_enough and max_loss):
        message = "give either --against, or --good-enough, which excludes --against and --max-loss"
        raise click.UsageError(message, click.get_current_context())
    if markdown is not None:
        check_target(markdown, lambda beginning: not beginning or beginning.startswith(_TITLE), "the summary")
    (source,) = sources
    found: GateResult | GoodEnough
    with ProgressReporter(source.name) as bar:

        def told(now: EvaluationProgress) -> None:
            bar.update(now.done, now.total, now.phase)

        if against is None:
            found = judged(source, common.pipeline, queries=queries, overrides=common.overrides, progress=told)
        else:
            found = gate(
                source,
                common.pipeline,
                against,
                store=settings(common.db).db,
                keep=not no_keep,
                max_loss=max_loss,
                queries=queries,
                overrides=common.overrides,
                progress=told,
            )
    report = found.as_report()
    _summaries(markdown_of(report), markdown)
    flags = _flags(common)
    notes = [*report.notes, *(f"flag {one.sentence}" for one in flags)]
    show_report(replace(report, notes=notes, data={**report.data, "flags": as_document(flags)}), common)
    return found.status


def _flags(common: Common) -> list[FlagVerdict]:
    """The verdicts on the active flags of the gated pipeline, if there is an evaluation database next to the store."""
    from speckit_memory.engine import components
    from speckit_memory.evaluation.experiments.flag_steps import flag_verdicts
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
    from speckit_memory.pipeline.configuration.loading import load

    config = settings(common.db, common.pipeline)
    if not evaluation_file(config.db).is_file():
        return []
    registry = components.registry(config.environ, config.root)
    whole = load(config.pipeline, config.environ_of_root, common.overrides, registry.flag_files)
    try:
        with EvaluationDatabase.open(evaluation_file(config.db), create=False) as database:
            return flag_verdicts(whole, registry, whole.flags.values(), database)
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
