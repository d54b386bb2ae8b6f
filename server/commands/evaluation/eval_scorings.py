"""`eval scorings`: shows how the steps of a pipeline change scores and ranks."""

from __future__ import annotations

import time

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.reports.terminal import show_report
from speckit_memory.server.shadows.wording import since as moment_of


@click.command("scorings")
@click.option("--since", metavar="WHEN", help="Only answers since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@shared_options("db", "json", "verbose")
def command(common: Common, since: str | None) -> None:
    """Show how often each step changed scores and ranks of results, and by how much.

    The figures come from the sample of answers that is kept in detail: a twentieth of the queries, unless
    .speckit/config.yaml sets another share, such as `evaluation: {observe: 1}`.
    """
    from speckit_memory.evaluation.experiments.scorings import ScoringReport, step_effects
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there

    moment = None if since is None else moment_of(since, time.time())

    def read(database: EvaluationDatabase) -> ScoringReport:
        return step_effects(database.scorings(moment), database.pipelines())

    report = read_if_there(settings(common.db).db, read) or step_effects((), {})
    show_report(report.as_report(), common)
