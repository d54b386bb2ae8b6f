"""`links undo`: reverts changes of causal links."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.shown_number import PrefixedInt
from speckit_memory.server.console.output import print_json, table_rows, wrap_text
from speckit_memory.server.views.links.links_text import change_cells


@click.command("undo")
@click.argument("changes", nargs=-1, type=PrefixedInt(), metavar="[CHANGE]...")
@click.option("--by", default="", metavar="MAKER", help="All changes by this maker, such as consolidation.")
@shared_options("db", "json")
def command(common: Common, changes: tuple[int, ...], by: str) -> int:
    """Undo changes of links by number, or all changes by a maker.

    The numbers are those of `links history`; all of them are undone or none. A change on which a later one rests is not
    undone alone; with --by it is reported and left. Exits with 1 when a change is left.
    """
    if bool(changes) is bool(by):
        raise click.UsageError("give either changes by their numbers or --by MAKER")
    with existing_store(common) as memory:
        found = memory.graph.undo(changes, by=by)
    if common.as_json:
        refused = [{**change.as_json(), "reason": reason} for change, reason in found.refused]
        print_json({"undone": [change.as_json() for change in found.undone], "refused": refused})
    else:
        for row in table_rows([change_cells(change) for change in found.undone]):
            click.echo(row)
        click.echo(wrap_text(f"{plural(len(found.undone), 'change')} undone"))
        for change, reason in found.refused:
            click.echo(wrap_text(f"#{change.id} is left: {reason}"))
    return 1 if found.refused else 0
