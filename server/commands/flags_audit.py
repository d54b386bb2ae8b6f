"""`flags audit`: do the flags keep their rules?"""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from config.errors import SpeckitError
from server.flag_audit import audit
from server.options import Common, shared
from server.output import print_json


@click.command("audit")
@shared("json")
def command(common: Common) -> None:
    """Check the rules of feature flags: at most 6 active, 90 days of life, an owner, evidence. Exit 1 on a breach."""
    flags, problems = audit(os.environ, datetime.now(UTC).date())
    if problems:
        raise SpeckitError.of(problems)
    if common.as_json:
        print_json({"flags": len(flags), "problems": []})
    else:
        click.echo(f"{len(flags)} flags, no rule is broken")
