"""`maintain`: runs the background work that is due, once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table_rows, wrap_text

if TYPE_CHECKING:
    from speckit_memory.engine.upkeep.maintenance import JobOutcome


@click.command("maintain")
@click.option("--dry-run", is_flag=True, help="Show what would be done and write nothing.")
@shared_options("db", "json")
def command(common: Common, dry_run: bool) -> int:
    """Run the background work that is due, once: for cron, where no server runs.

    Forgets sessions that are over, deletes memories whose files were missing for too long, archives expired memories
    and those that are old, rarely used and doubted, embeds memories that wait for vectors, finds contradictions,
    adjusts the strength of links to their use, links memories that share a name if .speckit/config.yaml says `entities:
    link`, and ranks memories by the causal graph. Only one process does this at a time; if another one is running,
    nothing is done. Exits with 1 when a job fails.
    """
    with existing_store(common) as memory:
        found = memory.lifecycle.maintain(dry_run=dry_run)
    if common.as_json:
        jobs = [asdict(done) for done in found.jobs]
        print_json({"dry_run": dry_run, "elsewhere": found.elsewhere, "failed": found.failed, "jobs": jobs})
    else:
        for row in table_rows([(done.job, _describe(done, dry_run)) for done in found.jobs]):
            click.echo(row)
        if found.elsewhere:
            click.echo(wrap_text("another process is running the background work"))
    return 1 if found.failed else 0


def _describe(done: JobOutcome, dry_run: bool) -> str:
    if done.failure:
        return f"failed: {done.failure}"
    if done.state == "not due":
        return "not due"
    if done.state == "waiting":
        return f"would be run: {done.count} {done.what}" if dry_run else "due"
    return f"{done.count} {done.what}" + (", and more to do" if done.state == "unfinished" else "")
