"""`links add`: adds a causal link."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.links.links_text import edge_text, place_text
from speckit_memory.server.views.links.relations import RELATIONS


@click.command("add")
@click.argument("source", metavar="ID|KEY")
@click.argument("relation", type=click.Choice(RELATIONS))
@click.argument("target", metavar="ID|KEY")
@click.option("--strength", type=float, help="Confidence in the link, 0 to 1: 1 for a new one.")
@click.option("--evidence", default="", help="The reason for the link.")
@shared_options("db", "json")
def command(common: Common, source: str, relation: str, target: str, strength: float | None, evidence: str) -> None:
    """Link two memories, as in `new.md supersedes old.md`, or change the link.

    The front matter of SOURCE declares the link under `causalLinks`, or the store alone if that file cannot be edited.
    A memory has at most 20 links.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        source: Id or key of the memory that the link begins at.
        relation: Relation of the link.
        target: Id or key of the memory that the link ends at.
        strength: Confidence in the link, 0 to 1; None for 1, or what an existing link has.
        evidence: Reason for the link.
    """
    with existing_store(common) as memory:
        edge = memory.graph.link(
            known_key(memory, source), relation, known_key(memory, target), strength=strength, evidence=evidence
        )
    if common.as_json:
        print_json(edge.as_json())
    else:
        click.echo(wrap_text(edge_text(edge)))
        click.echo(wrap_text(place_text(edge), dim=True))
