"""`unarchive`: restores archived memories."""

from __future__ import annotations

import time
from typing import Any

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table_rows, wrap_text


@click.command("unarchive")
@click.argument("names", nargs=-1, metavar="[ID|KEY]...")
@shared_options("db", "json")
def command(common: Common, names: tuple[str, ...]) -> None:
    """Restore archived memories for searches; without a name, list them.

    A memory that was archived because it had expired lives seven more days. An unknown name makes the whole command
    fail.
    """
    with existing_store(common) as memory:
        if not names:
            rows: list[dict[str, Any]] = [found._asdict() for found in memory.lifecycle.archived()]
            _list(rows, common.as_json)
            return
        known = {name: known_key(memory, name) for name in dict.fromkeys(names)}
        restored = {key: memory.lifecycle.unarchive(key) for key in known.values()}
    if common.as_json:
        print_json({"restored": [key for key, was in restored.items() if was], "memories": list(restored)})
        return
    for key, was in restored.items():
        click.echo(wrap_text(f"{key}: {'found by searches again' if was else 'was not archived'}"))


def _list(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"archived": rows})
        return
    shown = [(row["key"], row["reason"], time.strftime("%Y-%m-%d", time.localtime(row["archived_at"]))) for row in rows]
    for line in table_rows(shown) if shown else ():
        click.echo(line)
    click.echo(wrap_text(f"{plural(len(rows), 'memory')} archived", dim=True))
