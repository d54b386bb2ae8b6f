"""`flags audit`: do the flags keep their rules?"""

from __future__ import annotations

import os

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console import failures
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.environment import flags_of_extensions
from speckit_memory.server.console.output import print_json
from speckit_memory.server.flags.flag_audit import audit, today
from speckit_memory.server.flags.flag_reading import evidence_in_force


@click.command("audit")
@click.option("--strict", is_flag=True, help="Let shipped flags that have expired count as a breach too.")
@shared("db", "pipeline", "json")
def command(common: Common, strict: bool) -> int:
    """Check the rules of feature flags: at most 6 active, 90 days of life, an owner, a criterion, one state at a time,
    evidence for what is on. Exit 1 on a breach.

    Looks at the flags of the product and at .speckit/flags.yaml of the workspace, and changes nothing. That shipped
    flags have expired is only remarked on, unless --strict.
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
