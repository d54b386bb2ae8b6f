"""`eval replay`, `scorings` and `history`: what recorded queries and kept evaluations show."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors.echo import plural
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, no_keep_option, shared_options
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report
from speckit_memory.server.shadows.wording import since as moment_of


@click.command("replay")
@click.option(
    "--pipeline",
    "asked",
    default="",
    metavar="FILE|PRESET",
    shell_complete=completion.pipelines,
    help="The pipeline to ask.",
)
@click.option(
    "--flag",
    default="",
    metavar="NAME",
    help="Instead of --pipeline: compare the control with this flag open and closed.",
)
@click.option(
    "--against",
    default="",
    metavar="FILE|PRESET",
    shell_complete=completion.pipelines,
    help="The control; else the pipeline in use.",
)
@click.option("--since", metavar="WHEN", help="Only queries since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@no_keep_option
@shared_options("db", "set", "json", "verbose")
def replay_command(common: Common, asked: str, flag: str, against: str, since: str | None, no_keep: bool) -> None:
    """Ask recorded queries again through another pipeline and compare the answers.

    The report shows agreement, cost, and a verdict where there are judgements or uses. It needs the texts of queries,
    which are kept for seven days unless .speckit/config.yaml configures otherwise. --db may name a copy of the store:
    the queries are those recorded next to it, else those of the workspace's own store. Nothing is written to the store;
    the result is kept with the queries under an id, which `flags promote --evidence` accepts for the flag of --flag.
    """
    if bool(asked) == bool(flag):
        raise click.UsageError("give either --pipeline or --flag", click.get_current_context())
    from speckit_memory.evaluation.comparing.replay import replay
    from speckit_memory.memory.store.evaluation.database import evaluation_file

    config = settings(common.db)
    if not store_is_there(config.db):
        raise no_store(config, ("run `speckit-memory index PATH` first, in the project's folder",))
    moment = None if since is None else moment_of(since, time.time())
    # a copy of a store usually has no log: use the workspace's
    beside, own = evaluation_file(config.db), evaluation_file(settings().db)
    log: Path = beside if beside.exists() else own
    with ProgressReporter("replay") as bar:
        result = replay(
            log,
            config.db,
            asked,
            against,
            since=moment,
            flag=flag,
            overrides=common.overrides,
            keep=not no_keep,
            progress=lambda done, total: bar.update(done, total, "search"),
        )
    from speckit_memory.server.shadows.report import of_one

    notes = [
        *([f"{plural(result.without_text, 'query')} without texts left out"] if result.without_text else []),
        *(
            [f"{plural(result.served_by_others, 'query')} originally answered by a pipeline other than the control"]
            if result.served_by_others
            else []
        ),
        result.keeping,
    ]
    report = of_one(config.db, result.judged, made=time.time()).as_report()
    show_report(replace(report, notes=[*report.notes, *notes], data=result.as_json()), common)


@click.command("scorings")
@click.option("--since", metavar="WHEN", help="Only answers since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@shared_options("db", "json", "verbose")
def scorings_command(common: Common, since: str | None) -> None:
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


@click.command("history")
@click.option("--metric", default="nDCG@10", show_default=True, help="The metric to show.")
@click.option("--since", metavar="WHEN", help="Only evaluations since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@shared_options("db", "json", "verbose")
def history_command(common: Common, metric: str, since: str | None) -> None:
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
