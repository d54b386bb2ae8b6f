"""`flags promote`: a flag goes to its next state."""

from __future__ import annotations

import sys

import click

from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import print_json, wrapped
from speckit_memory.server.flags.flag_changes import promote


@click.command("promote")
@click.argument("name")
@click.option(
    "--evidence",
    default="",
    metavar="ID",
    help="The comparison that it rests on: an id that `shadow report` or `eval compare` shows.",
)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="What the flag is for, where its criterion only rules out a loss and the comparison shows no gain.",
)
@shared("db", "pipeline", "json")
def command(common: Common, name: str, evidence: str, reason: str) -> None:
    """Bring the flag NAME one state forward: off, dark_run, shadow, enabled, permanent.

    To be enabled, and again to be permanent, it needs a stored comparison of exactly the pipeline in use without and
    with the flag that meets the flag's criterion and shows no loss; to be permanent, one on other queries than the one
    by which it was enabled. Exits with 2 and everything that is missing otherwise. Writes the
    state into .speckit/flags.yaml of the workspace, and leaves the rest of that file as it is.
    """
    changed = promote(name, evidence, common.db, common.pipeline, reason=reason.strip())
    if common.as_json:
        print_json(changed.as_json())
        return
    for line in changed.lines():
        click.echo(wrapped(line))
    for remark in changed.remarks:
        click.echo(wrapped(f"remark: {remark}", stream=sys.stderr), err=True)
