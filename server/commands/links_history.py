"""`links history`: lists changes of causal links."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, table_rows, wrap_text
from speckit_memory.server.views.links.links_text import change_cells


@click.command("history")
@click.argument("name", required=False, metavar="[ID|KEY]")
@click.option("--by", default="", metavar="MAKER", help="Only changes by this maker, such as consolidation.")
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Maximum number, the latest first.",
)
@shared_options("db", "json")
def command(common: Common, name: str | None, by: str, limit: int) -> None:
    """Show changes of links: strengths, additions and removals.

    With a name, only those of one memory. Changes are by hand or by background work. `links undo` reverts them by
    number.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory; None for all memories.
        by: Maker of the changes; "" for all.
        limit: Maximum number, the latest first.
    """
    with existing_store(common) as memory:
        changes = memory.graph.history(known_key(memory, name) if name else None, by=by, limit=limit)
    if common.as_json:
        print_json({"changes": [change.as_json() for change in changes]})
        return
    for row in table_rows([change_cells(change) for change in changes]):
        click.echo(row)
    click.echo(wrap_text(plural(len(changes), "change"), dim=True))
