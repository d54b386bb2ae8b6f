"""`eval replay`: what a pipeline would have made of the queries that were asked."""

from __future__ import annotations

import time
from pathlib import Path

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, no_keep_option, shared
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.console.output import counted, print_json, wrapped
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.shadows.since import since as moment_of


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
    help="In its place: the control with this flag open, beside it with the flag closed.",
)
@click.option(
    "--against",
    default="",
    metavar="FILE|PRESET",
    shell_complete=completion.pipelines,
    help="The control; without it the pipeline in force.",
)
@click.option("--since", metavar="WHEN", help="Only queries since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.")
@no_keep_option
@shared("db", "set", "json")
def command(common: Common, asked: str, flag: str, against: str, since: str | None, no_keep: bool) -> None:
    """Ask the noted queries again, of another pipeline: agreement, cost, and a verdict where something is known.

    Needs the texts of queries, which are kept for seven days unless .speckit/config.yaml says otherwise. --db may
    name a copy of the store: the queries are those noted beside it, else those of the workspace's own store. Nothing is
    written to the store; the result is kept beside the queries under an id of its own, which `flags promote --evidence`
    takes for the flag of --flag.
    """
    if bool(asked) == bool(flag):
        raise click.UsageError("give --pipeline, or --flag in its place", click.get_current_context())
    from speckit_memory.evaluation.comparing.replay import replay
    from speckit_memory.memory.store.evaluation.database import evaluation_file

    config = settings(common.db)
    if not store_is_there(config.db):
        raise no_store(config, ("run `speckit-memory index PATH` first, in the project's folder",))
    moment = None if since is None else moment_of(since, time.time())
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
    if common.as_json:
        print_json(result.as_json())
        return
    from speckit_memory.server.shadows.report import of_one
    from speckit_memory.server.shadows.text import show

    show(of_one(config.db, result.judged, made=time.time()))
    if result.without_text:
        click.echo("\n" + wrapped(f"{counted(result.without_text, 'query')} without texts left out", dim=True))
    if result.served_by_others:
        told = f"{counted(result.served_by_others, 'query')} were once answered by another pipeline than the control"
        click.echo(wrapped(told, dim=True))
    click.echo(wrapped(result.keeping, dim=True))
