"""`checkpoint list`: lists the checkpoints."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, table_rows, wrap_text
from speckit_memory.server.views.checkpoint_text import as_json, describe_checkpoint


@click.command("list")
@click.option(
    "--folder", default="", metavar="FOLDER", help="Only checkpoints of this folder, below it, and of the whole store."
)
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, help="Maximum number of checkpoints."
)
@shared_options("db", "json")
def command(common: Common, folder: str, limit: int) -> None:
    """List the checkpoints of the store, the latest first, and mark damaged ones."""
    with existing_store(common) as memory:
        found = memory.checkpoints.list(folder, limit)
    if common.as_json:
        print_json({"checkpoints": [as_json(one) for one in found]})
        return
    for row in table_rows([(one.name, describe_checkpoint(one)) for one in found]) if found else ():
        click.echo(row)
    click.echo(wrap_text(plural(len(found), "checkpoint"), dim=True))
