"""`eval history`: shows a metric of kept evaluations over time."""

from __future__ import annotations

import time

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.reports.terminal import show_report
from speckit_memory.server.shadows.wording import since as moment_of


@click.command("history")
@click.option("--metric", default="nDCG@10", show_default=True, help="The metric to show.")
@click.option("--since", metavar="WHEN", help="Only evaluations since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@shared_options("db", "json", "verbose")
def command(common: Common, metric: str, since: str | None) -> None:
    """Show a metric of every kept comparison, gate and replay over time.

    `eval gate --against` and `flags promote --evidence` accept the ids.
    """
    from speckit_memory.evaluation.comparing.storage import History
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there

    moment = None if since is None else moment_of(since, time.time())

    def read(database: EvaluationDatabase) -> History:
        return History(metric, database.measured(metric, moment), database.metrics())

    history = read_if_there(settings(common.db).db, read) or History(metric, (), ())
    show_report(history.as_report(), common)
