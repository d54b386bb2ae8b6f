"""`learned forget`: removes learned trigger phrases."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.learned_list import row
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("forget")
@click.argument("name", required=False, metavar="[ID|KEY]")
@click.option("--phrase", default="", metavar="TEXT", help="Only this phrase.")
@click.option("--all", "every", is_flag=True, help="The phrases of all memories.")
@shared_options("db", "json")
def command(common: Common, name: str | None, phrase: str, every: bool) -> None:
    """Remove learned phrases of one memory or of all.

    A removed phrase is not learned again for the same memory.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory; None for all memories.
        phrase: The only phrase to forget; "" for all phrases.
        every: Whether the phrases of all memories are forgotten.
    """
    if (name is None) != every:
        raise click.UsageError("name a memory, or give --all for the phrases of all memories")
    with existing_store(common) as memory:
        gone = memory.triggers.forget(name=known_key(memory, name) if name else None, phrase=phrase)
    if common.as_json:
        print_json({"forgotten": [row(one) for one in gone]})
        return
    for one in gone:
        click.echo(wrap_text(f"{one.key}: {one.phrase}"))
    click.echo(wrap_text(f"{plural(len(gone), 'phrase')} forgotten", dim=True))
