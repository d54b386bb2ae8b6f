"""`model list`: lists the models of a store, of this machine, and those that can be fetched."""

from __future__ import annotations

import os
from typing import Any

import click

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, table_rows, wrap_text


@click.command("list")
@shared_options("db", "json")
def command(common: Common) -> None:
    """List embedding models: in the store, on this machine, and available by name."""
    from speckit_memory.memory.models.embedders.model_name import SERVICES
    from speckit_memory.memory.models.embedders.pulled import fetching, shelf

    store = _of_store(common)
    here = shelf.installed_models(os.environ)
    try:
        offered, missing = fetching.offered_models(), ""
    except SpeckitError as error:
        offered, missing = [], f"{error.problems[0].message}: {error.problems[0].actions[0]}"
    fetched: list[dict[str, Any]] = [
        {"name": f"fastembed:{one.model}", "dimensions": one.dimensions, "revision": one.revision}
        for one in here.values()
    ]
    can_be: list[dict[str, Any]] = [
        {"name": f"fastembed:{one.model}", "dimensions": one.dimensions, "megabytes": round(one.megabytes)}
        for one in offered
        if one.model not in here
    ]
    named = os.environ.get(EMBEDDER_VARIABLE, "")
    if common.as_json:
        document = {"store": store, "named": named, "fetched": fetched, "offered": can_be, "missing": missing}
        print_json(document)
        return
    click.echo("in the store:")
    for line in table_rows([_row(one) for one in store["models"]]) if store["models"] else ["  nothing yet"]:
        click.echo(line)
    if build := store["build"]:
        click.echo(wrap_text(f"being built: {build['name']}, {build['done']:,} of {build['total']:,} passages"))
    if named:
        click.echo(wrap_text(f"named by {EMBEDDER_VARIABLE}: {named}"))
    click.echo("on this machine:")
    rows = [("bundled", "256", ""), *((one["name"], str(one["dimensions"]), one["revision"][:12]) for one in fetched)]
    for line in table_rows(rows):
        click.echo(line)
    click.echo("can be fetched with `speckit-memory model pull NAME`:")
    for line in table_rows([(one["name"], str(one["dimensions"]), f"{one['megabytes']} MB") for one in can_be]) or ():
        click.echo(line)
    if missing:
        click.echo(wrap_text(missing))
    services = ", ".join(f"{kind}:MODEL" for kind in SERVICES)
    click.echo(wrap_text(f"services: {services} (docs/embedders.md)", dim=True))


def _of_store(common: Common) -> dict[str, Any]:
    if not store_is_there(settings(common.db).db):
        return {"models": [], "build": None}
    with common.open(create=False) as memory:
        known = memory.models.list()
    places = {known.serving: "in use", known.previous: "before"}
    models = [{**stamp._asdict(), "place": places.get(model_id, "cached")} for model_id, stamp in known.stamps.items()]
    if known.serving and known.serving not in known.stamps:
        models.append({"model_id": known.serving, "name": known.serving, "dimensions": 0, "place": "in use"})
    build = known.build._asdict() if known.build else None
    return {"models": sorted(models, key=lambda one: (one["place"] != "in use", one["name"])), "build": build}


def _row(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["name"], f"{one['dimensions']}" if one["dimensions"] else "", one["place"]
