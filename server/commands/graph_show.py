"""`graph show`: shows the density of the causal graph, its edges by maker, and derived rankings."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, table_rows


@click.command("show")
@shared_options("db", "json")
def command(common: Common) -> None:
    """Show how dense the causal graph is and who made its edges.

    Below 0.5 edges per memory the graph is sparse, from 1 on it is dense. In a dense graph memories are ranked by the
    links that lead from them and communities are found, in the background.
    """
    from speckit_memory.memory.store.reading.density import as_fields, describe_density

    with existing_store(common) as memory:
        found = memory.graph.report()
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
        ("density", describe_density(found.density)),
        ("connected", f"{found.density.connected} of {plural(found.density.memories, 'memory')}"),
        *((f"by {maker}", plural(count, "edge")) for maker, count in found.makers.items()),
        ("ranked", f"{plural(found.ranked, 'memory')} in {plural(found.communities, 'community')}"),
    ]
    if found.searched:
        facts.append(("names", f"{plural(found.names, 'name')} in {plural(found.searched, 'memory')}"))
    if found.waiting:
        facts.append(("waiting", f"{plural(found.waiting, 'memory')} for `speckit-memory maintain`"))
    for row in table_rows(facts):
        click.echo(row)
