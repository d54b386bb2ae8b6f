"""`flags audit`: do the flags keep their rules?"""

from __future__ import annotations

import os

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.environment import flags_of_extensions
from speckit_memory.server.flag_audit import audit, today
from speckit_memory.server.options import Common, shared
from speckit_memory.server.output import print_json


@click.command("audit")
@click.option("--strict", is_flag=True, help="Let shipped flags that have expired count as a breach too.")
@shared("json")
def command(common: Common, strict: bool) -> None:
    """Check the rules of feature flags: at most 6 active, 90 days of life, an owner, evidence. Exit 1 on a breach.

    Looks at the flags of the product and at .speckit/flags.yaml of the workspace. That shipped flags have expired is
    only remarked on, unless --strict.
    """
    found = audit(os.environ, today(), strict=strict, extensions=flags_of_extensions(os.environ))
    if found.problems:
        raise SpeckitError.of(found.problems)
    if common.as_json:
        print_json({"flags": len(found.flags), "problems": [], "remarks": found.remarks})
        return
    click.echo(f"{len(found.flags)} flags, no rule is broken")
    for remark in found.remarks:
        click.echo(f"remark: {remark}")
