"""`checkpoint create`: stores the present state of the memories."""

from __future__ import annotations

import json
from typing import Any

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.checkpoint_text import as_json, describe_checkpoint


def _metadata(_context: click.Context, _parameter: click.Parameter, text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SpeckitError("E030", '--metadata is not a JSON object such as {"why": "before the import"}')
    return found


@click.command("create")
@click.argument("name")
@click.option("--folder", default="", metavar="FOLDER", help="Only the memories of this folder and below.")
@click.option("--metadata", callback=_metadata, metavar="JSON", help="A JSON object that is shown with the checkpoint.")
@shared_options("db", "json")
def command(common: Common, name: str, folder: str, metadata: dict[str, Any]) -> None:
    """Store the present state of all memories under a new NAME.

    A checkpoint includes everything that was learned about the memories, and is verified after writing. The oldest
    checkpoints beyond the number that the workspace keeps (ten) are deleted.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Name of the checkpoint.
        folder: Folder that limits the command, with all below it; "" for the whole store.
        metadata: JSON object that is shown with the checkpoint.
    """
    with existing_store(common) as memory:
        made = memory.checkpoints.create(name, folder=folder, metadata=metadata)
    if common.as_json:
        print_json({"checkpoint": as_json(made.checkpoint), "dropped": list(made.dropped)})
        return
    click.echo(wrap_text(f"{name}: {describe_checkpoint(made.checkpoint)}"))
    if made.checkpoint.faults:
        click.echo(wrap_text(f"the store has faults, which the checkpoint has too: {made.checkpoint.faults[0]}"))
    for dropped in made.dropped:
        click.echo(wrap_text(f"deleted {dropped}: more checkpoints than the workspace keeps", dim=True))
