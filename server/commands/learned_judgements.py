"""`learned judgements`: lists the judgements of readers and their effects."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table, wrap_text
from speckit_memory.server.views.judgements_text import HEADS, cells, row


@click.command("judgements")
@click.option("--memory", "name", metavar="ID|KEY", help="Only judgements of this memory.")
@click.option("--session", default="", metavar="NAME", help="Only judgements by this session.")
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Maximum number, the latest first.",
)
@shared_options("db", "json")
def command(common: Common, name: str | None, session: str, limit: int) -> None:
    """Show judgements and promotions: when, by which session, and their effect.

    `learned undo` reverts them. The last 200 of each memory are kept.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory; None for all memories.
        session: Session that judged; "" for all.
        limit: Maximum number, the latest first.
    """
    with existing_store(common) as memory:
        found = memory.learning.judgements(known_key(memory, name) if name else None, session=session, limit=limit)
    if common.as_json:
        print_json({"judgements": [row(one) for one in found]})
        return
    if found:
        click.echo(table([HEADS, *(cells(one) for one in found)], headed=True))
    click.echo(wrap_text(plural(len(found), "judgement"), dim=True))
