"""`pipeline check`: reports every problem of a pipeline file with its position."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.environment import remarks
from speckit_memory.server.console.failures import show_problems
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("check")
@click.argument("file", shell_complete=completion.pipelines)
@shared_options("set", "json")
def command(common: Common, file: str) -> int:
    """Check a pipeline FILE (or preset) and report all problems at once.

    Each problem has the form file:line:column: code message, followed by a hint.
    """
    from speckit_memory.engine.pipelines import pipelines

    _show_remarks(remarks(os.environ))
    problems = pipelines.check(file, os.environ, common.overrides)
    if problems:
        error = SpeckitError.of(problems)
        if common.as_json:
            print_json(error.as_json())
        else:
            show_problems(error.problems, sys.stdout)
            count = len(error.problems)
            click.echo(wrap_text(f"{count:,} problem{'s' if count > 1 else ''} in {abridge(file)}"))
        return error.exit_status
    lints = pipelines.remarks(file, os.environ)
    if common.as_json:
        print_json({"file": file, "problems": []} | ({"remarks": lints} if lints else {}))
    else:
        _show_remarks(lints)
        click.echo(wrap_text(f"{file}: no problems"))
    return 0


def _show_remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        click.echo(wrap_text(f"remark: {remark}", stream=sys.stderr), err=True)
