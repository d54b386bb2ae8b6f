"""`model pull`: downloads a model by name, once."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter


@click.command("pull")
@click.argument("name")
@shared_options("json")
def command(common: Common, name: str) -> None:
    """Fetch the embedding model NAME, such as fastembed:BAAI/bge-small-en-v1.5.

    Needs the extra 'quality'. Every file is compared with the checksum from its repository. Afterwards the network is
    not used.
    """
    from speckit_memory.memory.models.embedders.model_name import FASTEMBED, parse_model_name
    from speckit_memory.memory.models.embedders.pulled import fetching, shelf

    wanted = parse_model_name(name, {})
    if wanted.kind != FASTEMBED:
        raise SpeckitError(
            "E030",
            f"'{name}' cannot be fetched: only names such as fastembed:BAAI/bge-small-en-v1.5 can",
            actions=("run `speckit-memory model list` for their names",),
        )
    with ProgressReporter("fetching") as bar:
        manifest, fetched = fetching.fetch(wanted.model, os.environ, bar.update)
    place = shelf.place_of(manifest.model, os.environ)
    if common.as_json:
        print_json({**asdict(manifest), "folder": str(place), "fetched": fetched})
        return
    what = "fetched into" if fetched else "is already complete in"
    click.echo(wrap_text(f"fastembed:{manifest.model}, revision {manifest.revision[:12]}, {what} {place}"))
    click.echo(wrap_text(f"`speckit-memory model use fastembed:{manifest.model}` activates it"))
