"""`links history`: what became of causal links."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, table_rows, wrapped
from speckit_memory.server.views.links.links_text import change_cells


@click.command("history")
@click.argument("name", required=False, metavar="[ID|KEY]")
@click.option("--by", default="", metavar="MAKER", help="Only what this maker changed, such as consolidation.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=100, show_default=True, help="How many, the last first."
)
@shared("db", "json")
def command(common: Common, name: str | None, by: str, limit: int) -> None:
    """Show every change of a link's strength, and which links were made or removed by hand or by background work.

    With a name, those of one memory. `links undo` takes changes back by their numbers.
    """
    with existing_store(common) as memory:
        changes = memory.link_history(known_key(memory, name) if name else None, by=by, limit=limit)
    if common.as_json:
        print_json({"changes": [change.as_json() for change in changes]})
        return
    for row in table_rows([change_cells(change) for change in changes]):
        click.echo(row)
    click.echo(wrapped(counted(len(changes), "change"), dim=True))
