"""`pipeline show`: prints the pipeline in use."""

from __future__ import annotations

import os

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json


@click.command("show")
@click.option("--effective", is_flag=True, help="Show every parameter with its value, defaults included.")
@click.option("--origin", is_flag=True, help="Show where each value comes from, key by key.")
@shared_options("pipeline", "set", "json")
def command(common: Common, effective: bool, origin: bool) -> None:
    """Show the pipeline in use as YAML: as written, or with every value filled in."""
    from speckit_memory.engine.pipelines.pipelines import show

    config = settings(pipeline=common.pipeline)
    source = config.pipeline
    text = show(source, os.environ, common.overrides, effective=effective, origin=origin)
    if origin:
        text = f"# {config.pipeline_told}\n{text}"
    if common.as_json:
        print_json({"pipeline": source, "yaml": text})
    else:
        click.echo(text, nl=False)
