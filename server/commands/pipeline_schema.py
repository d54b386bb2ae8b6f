"""`pipeline schema`: prints the JSON Schema of pipeline files."""

from __future__ import annotations

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json


@click.command("schema")
@shared_options("json")
def command(common: Common) -> None:  # noqa: ARG001 -- the answer is JSON with and without --json
    """Print the JSON Schema of pipeline files, for completion and checks in editors."""
    from speckit_memory.engine.pipelines.pipelines import schema

    print_json(schema())
