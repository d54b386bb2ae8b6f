"""`shadow report`: reports the results of shadow pipelines."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from speckit_memory.config.files.written_file import check_target, written
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.console.output import wrap_text
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.operation import Option, Parameters, View, operation
from speckit_memory.server.shadows.wording import since as moment_of

if TYPE_CHECKING:
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.operations.command_line import CommandCall
    from speckit_memory.server.shadows.report import ShadowReport

MARK = "speckit-memory shadow report"
PAGE_MARK = f'<meta name="generator" content="{MARK}">'
"""Marks a page as ours, so that it may be overwritten."""


class ShadowQuery(Parameters):
    page: Annotated[
        Path | None, Option("Write the report as one self-contained page.", command="--html", metavar="FILE")
    ] = None
    since: Annotated[
        str | None,
        Option("Only queries since then: 90s, 30m, 24h, 7d, 2w, 2026-01-31 or 2026-01-31T09:00.", metavar="WHEN"),
    ] = None
    experiment: Annotated[str, Option("Only this comparison, by its id in reports.", metavar="ID")] = ""


@operation("tuning", "shadow report", one_door="people decide on pipelines", shared=("db", "json", "verbose"))
def report_shadows(call: CommandCall, params: ShadowQuery) -> View:
    """Show the results of shadow pipelines: verdict, agreement, cost, next steps.

    Queries that wait for a replay are replayed first; the next run continues an interrupted replay. Reports may be read
    at any time: their verdicts are anytime-valid. Percentiles of times have no interval.
    """
    now, page, config = time.time(), params.page, call.config
    first = None if params.since is None else moment_of(params.since, now)
    if page is not None:
        check_target(page, lambda beginning: PAGE_MARK in beginning, "the page")
    if not store_is_there(config.db):
        raise no_store(config, ("run `speckit-memory index PATH` first, in the project's folder",))
    from speckit_memory.server.shadows.empty_report import why_nothing
    from speckit_memory.server.shadows.report import read

    replay(call.common, config)
    gc.disable()  # hundreds of thousands of records are created and live until the end
    try:
        report = read(
            config.db,
            since=first,
            experiment=params.experiment,
            now=now,
            nothing=lambda: why_nothing(config, params.since),
        )
    finally:
        gc.enable()
    if page is None:
        return View(reports=[report.as_report()])
    write_page(page, report)
    return View(report.sentence(), dict(report.as_report().data), hints=(f"written as a page: {page}",))


def replay(common: Common, config: Settings) -> None:
    """Replays queries that wait for the shadows of the pipeline in use; a failure is only a warning."""
    from speckit_memory.engine import Memory
    from speckit_memory.memory.store.evaluation.database import evaluation_file

    if not evaluation_file(config.db).exists():
        return
    try:
        with Memory.open(config.db, common.pipeline, create=False) as memory, ProgressReporter("replay") as bar:
            memory.shadows.finish(None, lambda done, total: bar.update(done, total, "kept queries"))
    except SpeckitError as error:
        click.echo(wrap_text(f"Kept queries could not be replayed: {error}", fg="yellow"), err=True)


def write_page(file: Path, report: ShadowReport) -> None:
    """Writes the page completely or not at all. Raises SpeckitError (E014)."""
    from speckit_memory.server.reports.html import page
    from speckit_memory.server.shadows.wording import moment

    since = f", of queries since {moment(report.since)}" if report.since is not None else ""
    made = f"Shadow report of speckit-memory, made {moment(report.made)}{since}."
    text = page(report.as_report(), mark=MARK, made=made)
    try:
        with written(file) as stream:
            stream.write(text)
    except OSError as error:
        raise SpeckitError("E014", f"the page '{file}' cannot be written: {error.strerror}") from error
