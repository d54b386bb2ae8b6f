"""`graph link`: links memories that name the same."""

from __future__ import annotations

from dataclasses import asdict

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, wrapped


@click.command("link")
@shared("db", "json")
def command(common: Common) -> None:
    """Link memories that name the same, by rules: where the graph has less than an edge per memory.

    Names are words with capitals that stand together, headings, what is quoted, languages of code and what is used. One
    that more than ten memories have links nothing. With `entities: link` in .speckit/config.yaml the background work
    does this; `graph remove --by entities` takes it out again.
    """
    with existing_store(common) as memory:
        found = memory.link_names()
    if common.as_json:
        print_json(asdict(found))
        return
    links = f"{counted(found.added, 'link')} added, {found.removed} removed"
    dense = "" if found.room else "; the graph is dense without links of names"
    click.echo(wrapped(f"{counted(found.searched, 'memory')} searched for names, {links}{dense}"))
