"""`maintain`: the background work that is due, once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import print_json, table_rows, wrapped

if TYPE_CHECKING:
    from speckit_memory.engine.upkeep.maintenance import Done


@click.command("maintain")
@click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
@shared("db", "json")
def command(common: Common, dry_run: bool) -> int:
    """Do the background work that is due, once: for cron, where no server runs.

    Forgets sessions that are over, deletes memories whose files were away for too long, archives those that have
    expired and those that are old, hardly used and doubted, embeds what waits for its vectors, looks for memories that
    contradict each other, moves the strength of links with their use, links what names the same where
    .speckit/config.yaml says `entities: link`, and ranks what the causal graph connects. A process at a time does so;
    where another is at it, nothing is done. Exit 1 when a job fails.
    """
    with existing_store(common) as memory:
        found = memory.maintain(dry_run=dry_run)
    if common.as_json:
        jobs = [asdict(done) for done in found.jobs]
        print_json({"dry_run": dry_run, "elsewhere": found.elsewhere, "failed": found.failed, "jobs": jobs})
    else:
        for row in table_rows([(done.job, _told(done, dry_run)) for done in found.jobs]):
            click.echo(row)
        if found.elsewhere:
            click.echo(wrapped("another process is at it; it does what is due"))
    return 1 if found.failed else 0


def _told(done: Done, dry_run: bool) -> str:
    if done.failure:
        return f"failed: {done.failure}"
    if done.state == "not due":
        return "not due"
    if done.state == "waiting":
        return f"would be run: {done.count} {done.what}" if dry_run else "due"
    return f"{done.count} {done.what}" + (", and more to do" if done.state == "unfinished" else "")
