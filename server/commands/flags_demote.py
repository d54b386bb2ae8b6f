"""`flags demote`: moves a flag back to its previous state."""

from __future__ import annotations

import sys

import click

from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import print_json, wrapped
from speckit_memory.server.flags.flag_changes import demote


@click.command("demote")
@click.argument("name")
@shared("db", "pipeline", "json")
def command(common: Common, name: str) -> None:
    """Move the flag NAME one state back, which needs no evidence.

    Writes .speckit/flags.yaml of the workspace.
    """
    changed = demote(name, common.db, common.pipeline)
    if common.as_json:
        print_json(changed.as_json())
        return
    for line in changed.lines():
        click.echo(wrapped(line))
    for remark in changed.remarks:
        click.echo(wrapped(f"remark: {remark}", stream=sys.stderr), err=True)
