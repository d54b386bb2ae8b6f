"""`graph link`: links memories that share a name."""

from __future__ import annotations

from dataclasses import asdict

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("link")
@shared_options("db", "json")
def command(common: Common) -> None:
    """Link memories that share a name, while the graph has few edges.

    Linking needs less than one edge per memory. Names are found by rules: consecutive capitalised words, headings,
    quoted text, languages of code blocks, and the word after "using". A name in more than ten memories links nothing.
    With `entities: link` in .speckit/config.yaml the background work does this; `graph remove --by entities` removes
    the links again.
    """
    with existing_store(common) as memory:
        found = memory.graph.link_names()
    if common.as_json:
        print_json(asdict(found))
        return
    links = f"{plural(found.added, 'link')} added, {found.removed} removed"
    dense = "" if found.room else "; the graph is dense enough without links by name"
    click.echo(wrap_text(f"{plural(found.searched, 'memory')} searched for names, {links}{dense}"))
