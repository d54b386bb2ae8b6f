"""`graph remove`: removes the edges of an automatic process from the causal graph."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("remove")
@click.option(
    "--by", "made_by", required=True, metavar="NAME", help="The process that made the edges, as `graph show` lists it."
)
@click.option("--dry-run", is_flag=True, help="Count the edges and delete none.")
@shared_options("db", "json")
def command(common: Common, made_by: str, dry_run: bool) -> None:
    """Delete every causal edge that an automatic process made.

    Edges declared by documents or made by people are not deleted. Edges by shared names come back with the next
    background work if .speckit/config.yaml says `entities: link`. The rest of the graph is ranked again afterwards.
    `links undo --by "graph remove"` reverts the deletion.
    """
    with existing_store(common) as memory:
        removed = memory.graph.remove_edges(made_by, dry_run=dry_run)
    if common.as_json:
        print_json({"dry_run": dry_run, "made_by": made_by, "edges": removed})
    else:
        click.echo(
            wrap_text(f"{plural(removed, 'edge')} of '{made_by}' {'would be deleted' if dry_run else 'deleted'}")
        )
