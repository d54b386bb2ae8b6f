"""`flags demote`: moves a flag back to its previous state."""

from __future__ import annotations

import sys

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.flags.flag_changes import demote


@click.command("demote")
@click.argument("name")
@shared_options("db", "pipeline", "json")
def command(common: Common, name: str) -> None:
    """Move the flag NAME one state back, which needs no evidence.

    Writes .speckit/flags.yaml of the workspace.
    """
    changed = demote(name, common.db, common.pipeline)
    if common.as_json:
        print_json(changed.as_json())
        return
    for line in changed.lines():
        click.echo(wrap_text(line))
    for remark in changed.remarks:
        click.echo(wrap_text(f"remark: {remark}", stream=sys.stderr), err=True)
