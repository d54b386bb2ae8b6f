"""`flags audit`: checks whether the flags keep their rules."""

from __future__ import annotations

import os

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console import failures
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.environment import flags_of_extensions
from speckit_memory.server.console.output import print_json
from speckit_memory.server.flags.flag_audit import audit, today
from speckit_memory.server.flags.flag_reading import evidence_in_force


@click.command("audit")
@click.option("--strict", is_flag=True, help="Treat expired shipped flags as a breach too.")
@shared_options("db", "pipeline", "json")
def command(common: Common, strict: bool) -> int:
    """Check the rules of feature flags; exit with 1 on a breach.

    The rules: at most 6 active flags, 90 days of life, an owner, a criterion, one state at a time, evidence for flags
    that are on. Reads the flags of the product and .speckit/flags.yaml of the workspace, and changes nothing. Expired
    shipped flags are only remarked on, unless --strict is given.
    """
    with evidence_in_force(common.db, common.pipeline) as evidence:
        extensions = flags_of_extensions(os.environ)
        found = audit(os.environ, today(), strict=strict, extensions=extensions, evidence=evidence)
    if found.problems:
        failures.show(SpeckitError.of(found.problems), common.as_json)
        return 1
    if common.as_json:
        print_json({"flags": len(found.flags), "problems": [], "remarks": found.remarks})
        return 0
    click.echo(f"{len(found.flags)} flags, no rule is broken")
    for remark in found.remarks:
        click.echo(f"remark: {remark}")
    return 0
