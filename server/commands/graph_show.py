"""`graph show`: shows the density of the causal graph, its edges by maker, and derived rankings."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import counted, print_json, table_rows


@click.command("show")
@shared("db", "json")
def command(common: Common) -> None:
    """Show how dense the causal graph is and who made its edges.

    Below 0.5 edges per memory the graph is sparse, from 1 on it is dense. In a dense graph memories are ranked by the
    links that lead from them and communities are found, in the background.
    """
    from speckit_memory.memory.store.reading.density import as_fields, told

    with existing_store(common) as memory:
        found = memory.graph()
    if common.as_json:
        print_json(
            {
                "density": as_fields(found.density),
                "made_by": found.makers,
                "ranked": found.ranked,
                "communities": found.communities,
                "waiting": found.waiting,
                "searched": found.searched,
                "names": found.names,
            }
        )
        return
    facts = [
        ("density", told(found.density)),
        ("connected", f"{found.density.connected} of {counted(found.density.memories, 'memory')}"),
        *((f"by {maker}", counted(count, "edge")) for maker, count in found.makers.items()),
        ("ranked", f"{counted(found.ranked, 'memory')} in {counted(found.communities, 'community')}"),
    ]
    if found.searched:
        facts.append(("names", f"{counted(found.names, 'name')} in {counted(found.searched, 'memory')}"))
    if found.waiting:
        facts.append(("waiting", f"{counted(found.waiting, 'memory')} for `speckit-memory maintain`"))
    for row in table_rows(facts):
        click.echo(row)
