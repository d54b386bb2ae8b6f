"""`flags promote`: moves a flag to its next state."""

from __future__ import annotations

import sys

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.flags.flag_changes import promote


@click.command("promote")
@click.argument("name")
@click.option(
    "--evidence",
    default="",
    metavar="ID",
    help="The comparison to rest on: an id from `shadow report` or `eval compare`.",
)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="The purpose of the flag, needed if its criterion only rules out a loss and the comparison shows no gain.",
)
@shared_options("db", "pipeline", "json")
def command(common: Common, name: str, evidence: str, reason: str) -> None:
    """Move the flag NAME one state forward: off, dark_run, shadow, enabled, permanent.

    To become enabled, and again to become permanent, a flag needs a stored comparison of exactly the pipeline in use
    without and with it, which meets its criterion and shows no loss; to become permanent, one on other queries than the
    one by which it was enabled. Otherwise the command exits with 2 and lists everything that is missing. Writes the
    state into .speckit/flags.yaml of the workspace and leaves the rest of that file unchanged.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Name of the flag.
        evidence: Id of the comparison to rest on; "" for none.
        reason: Purpose of the flag, needed where its criterion only rules out a loss.
    """
    changed = promote(name, evidence, common.db, common.pipeline, reason=reason.strip())
    if common.as_json:
        print_json(changed.as_json())
        return
    for line in changed.lines():
        click.echo(wrap_text(line))
    for remark in changed.remarks:
        click.echo(wrap_text(f"remark: {remark}", stream=sys.stderr), err=True)
