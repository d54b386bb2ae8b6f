"""`graph remove`: takes out of the causal graph what an automatic process put there."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, wrapped


@click.command("remove")
@click.option("--by", "made_by", required=True, metavar="NAME", help="Who made the edges, as `graph show` tells.")
@click.option("--dry-run", is_flag=True, help="Count the edges and delete none.")
@shared("db", "json")
def command(common: Common, made_by: str, dry_run: bool) -> None:
    """Delete every causal edge that an automatic process made.

    Edges that documents declare and people make are not deleted this way. Those of names that documents share come back
    with the next background work where .speckit/config.yaml says `entities: link`. What is left of the graph is ranked
    anew then. `links undo --by "graph remove"` takes the deletion back.
    """
    with existing_store(common) as memory:
        removed = memory.remove_edges(made_by, dry_run=dry_run)
    if common.as_json:
        print_json({"dry_run": dry_run, "made_by": made_by, "edges": removed})
    else:
        click.echo(wrapped(f"{counted(removed, 'edge')} of '{made_by}' {'would be deleted' if dry_run else 'deleted'}"))
