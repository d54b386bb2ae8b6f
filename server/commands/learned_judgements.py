"""`learned judgements`: what readers judged, and what that did."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, table, wrapped
from speckit_memory.server.views.judgements_text import HEADS, cells, row


@click.command("judgements")
@click.option("--memory", "name", metavar="ID|KEY", help="Those of this memory alone.")
@click.option("--session", default="", metavar="NAME", help="Those that this session gave.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=100, show_default=True, help="How many, the last first."
)
@shared("db", "json")
def command(common: Common, name: str | None, session: str, limit: int) -> None:
    """Show what was judged useful or not and what was promoted: when, by which session, and what it did.

    `learned undo` takes it back. Of each memory the last 200 are kept.
    """
    with existing_store(common) as memory:
        found = memory.judgements(known_key(memory, name) if name else None, session=session, limit=limit)
    if common.as_json:
        print_json({"judgements": [row(one) for one in found]})
        return
    if found:
        click.echo(table([HEADS, *(cells(one) for one in found)], headed=True))
    click.echo(wrapped(counted(len(found), "judgement"), dim=True))
