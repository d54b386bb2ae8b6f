"""`flags list`: states, ages and evidence."""

from __future__ import annotations

import os
import sys

import click

from speckit_memory.server.environment import flags_of_extensions, remarks
from speckit_memory.server.flag_audit import audit, today
from speckit_memory.server.options import Common, shared
from speckit_memory.server.output import print_json, table, wrapped


@click.command("list")
@shared("json")
def command(common: Common) -> None:
    """List the feature flags with state, age, expiry, evidence, and the file or variable that decided the state."""
    found = audit(os.environ, today(), extensions=flags_of_extensions(os.environ))
    flags = found.flags
    for remark in (*remarks(os.environ), *found.remarks):
        click.echo(wrapped(f"remark: {remark}", stream=sys.stderr), err=True)
    if common.as_json:
        print_json({"flags": [flag.as_json() for flag in flags]})
    elif not flags:
        click.echo(wrapped("No feature flags are declared: every step of the pipeline is decided by its file alone."))
    else:
        rows = [("flag", "state", "group", "owner", "days", "expires", "decided by", "evidence")]
        rows += [
            (f.name, f.state, f.group, f.owner, "" if f.age_days is None else str(f.age_days), f.expires, f.origin,
             f.evidence)
            for f in flags
        ]  # fmt: skip
        click.echo(table(rows, right=(4,), headed=True))
