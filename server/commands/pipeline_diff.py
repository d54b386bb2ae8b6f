"""`pipeline diff`: shows the differences between two pipelines."""

from __future__ import annotations

import os

import click

from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@click.argument("a", shell_complete=completion.pipelines)
@click.argument("b", shell_complete=completion.pipelines)
@shared_options("json")
def command(common: Common, a: str, b: str) -> None:
    """Compare two pipelines (files or presets) by what would run, defaults included."""
    from speckit_memory.engine.pipelines.pipelines import diff

    text = diff(a, b, os.environ)
    if common.as_json:
        print_json({"a": a, "b": b, "same": not text, "diff": text})
    elif not text:
        click.echo(f"{a} and {b} would do the same")
    else:
        for line in text.splitlines():
            click.secho(line, fg=COLOURS.get(line[:1]))
