"""`links remove`: removes a causal link."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.shown_number import PrefixedInt
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.links.links_text import edge_text


@click.command("remove")
@click.argument("link", type=PrefixedInt(), metavar="LINK")
@shared_options("db", "json")
def command(common: Common, link: int) -> None:
    """Remove the link with the number LINK, which `lineage` shows.

    It is also removed from the front matter that declares it; a link in the text of a document must be removed there.
    `links undo` restores it.
    """
    with existing_store(common) as memory:
        removed, declared = memory.graph.unlink(link)
    if common.as_json:
        print_json({"removed": removed.as_json(), "declared": declared.as_json() if declared else None})
        return
    click.echo(wrap_text(f"removed {edge_text(removed)}"))
    if declared:
        click.echo(wrap_text(f"a document still declares it: {edge_text(declared)}"))
