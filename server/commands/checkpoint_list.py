"""`checkpoint list`: lists the checkpoints."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, table_rows, wrapped
from speckit_memory.server.views.checkpoint_text import as_json, told


@click.command("list")
@click.option(
    "--folder", default="", metavar="FOLDER", help="Only checkpoints of this folder, below it, and of the whole store."
)
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, help="Maximum number of checkpoints."
)
@shared("db", "json")
def command(common: Common, folder: str, limit: int) -> None:
    """List the checkpoints of the store, the latest first, and mark damaged ones."""
    with existing_store(common) as memory:
        found = memory.checkpoint_list(folder, limit)
    if common.as_json:
        print_json({"checkpoints": [as_json(one) for one in found]})
        return
    for row in table_rows([(one.name, told(one)) for one in found]) if found else ():
        click.echo(row)
    click.echo(wrapped(counted(len(found), "checkpoint"), dim=True))
