"""`checkpoint delete`: deletes a checkpoint."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("delete")
@click.argument("name")
@shared_options("db", "json")
def command(common: Common, name: str) -> None:
    """Delete the checkpoint NAME permanently."""
    with existing_store(common) as memory:
        gone = memory.checkpoints.delete(name)
    if common.as_json:
        print_json({"deleted": gone.name, "bytes": gone.bytes})
        return
    click.echo(wrap_text(f"{gone.name} was deleted"))
