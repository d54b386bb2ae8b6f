"""`flags list`: shows states, ages, criteria and evidence of flags."""

from __future__ import annotations

import os
import sys

import click

from speckit_memory.config.flags.flags import read_flags
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.environment import flags_of_extensions, remarks
from speckit_memory.server.console.output import print_json, table, wrap_text
from speckit_memory.server.flags.flag_audit import audit, today


@click.command("list")
@shared_options("pipeline", "json")
def command(common: Common) -> None:
    """List the feature flags with state, age, expiry, criterion and evidence.

    Also shows who decided on the state, the pipelines whose steps wait for the flag, and its present effect on the
    pipeline in use.
    """
    from speckit_memory.engine.pipelines.flags_in_pipelines import waiting

    found = audit(os.environ, today(), extensions=flags_of_extensions(os.environ))
    flags, pipelines = found.flags, waiting(settings(pipeline=common.pipeline))
    in_force, _ = read_flags(os.environ, extensions=flags_of_extensions(os.environ))
    runs = {flag.name: pipelines.runs(in_force[flag.name]) for flag in flags}
    if unreadable := [problem for problem in found.problems if problem.code != "E124"]:
        raise SpeckitError.of(unreadable)
    for remark in (*remarks(os.environ), *found.remarks):
        click.echo(wrap_text(f"remark: {remark}", stream=sys.stderr), err=True)
    if common.as_json:
        listed = [
            {**flag.as_json(), "pipelines": list(pipelines.pipelines(flag.name)), "runs": runs[flag.name]}
            for flag in flags
        ]
        print_json({"flags": listed})
    elif not flags:
        click.echo(wrap_text("No feature flags are declared: every step of the pipeline is decided by its file alone."))
    else:
        heads = ("flag", "state", "runs", "pipelines", "group", "owner", "days", "expires", "decided by")
        rows = [(*heads, "criterion", "evidence")]
        rows += [
            (
                f.name,
                f.state if f.percent == 100 else f"{f.state} {f.percent} %",
                runs[f.name],
                ", ".join(pipelines.pipelines(f.name)),
                f.group,
                f.owner,
                "" if f.age_days is None else str(f.age_days),
                f.expires,
                f.origin,
                f.criterion,
                f.evidence,
            )
            for f in flags
        ]
        filled = [
            column for column in zip(*rows, strict=True) if any(column[1:])
        ]  # columns without content are left out
        days = [place for place, column in enumerate(filled) if column[0] == "days"]
        click.echo(table(list(zip(*filled, strict=True)), right=days, headed=True))
