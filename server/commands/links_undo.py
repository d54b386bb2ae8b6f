"""`links undo`: takes changes of causal links back."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.arguments.shown_number import ShownNumber
from speckit_memory.server.console.output import counted, print_json, table_rows, wrapped
from speckit_memory.server.views.links.links_text import change_cells


@click.command("undo")
@click.argument("changes", nargs=-1, type=ShownNumber(), metavar="[CHANGE]...")
@click.option("--by", default="", metavar="MAKER", help="All that this maker changed, such as consolidation.")
@shared("db", "json")
def command(common: Common, changes: tuple[int, ...], by: str) -> int:
    """Take changes of links back: by the numbers that `links history` shows, all or none, or all that a maker changed.

    What a later change stands on is not undone alone; with --by it is told and left. Exit 1 when something is left.
    """
    if bool(changes) is bool(by):
        raise click.UsageError("say which changes, by their numbers or with --by MAKER, one of the two")
    with existing_store(common) as memory:
        found = memory.undo_links(changes, by=by)
    if common.as_json:
        refused = [{**change.as_json(), "reason": reason} for change, reason in found.refused]
        print_json({"undone": [change.as_json() for change in found.undone], "refused": refused})
    else:
        for row in table_rows([change_cells(change) for change in found.undone]):
            click.echo(row)
        click.echo(wrapped(f"{counted(len(found.undone), 'change')} undone"))
        for change, reason in found.refused:
            click.echo(wrapped(f"#{change.id} is left: {reason}"))
    return 1 if found.refused else 0
