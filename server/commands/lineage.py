"""`lineage`: shows the reasons for a decision and its consequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.links.relations import DIRECTIONS, RELATIONS, Direction

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage


def link_text(link: Mapping[str, Any]) -> str:
    """One link of a lineage (a dict from `engine.graph.lineage.link_json`) as a line."""
    hops = f"{link['hop']} hop" + ("s" if link["hop"] > 1 else "")
    facts = f"strength {link['strength']:g}, {hops}, link {link['edge']} by {link['created_by']}"
    said = f": {link['evidence']}" if link["evidence"] else ""
    return f"{link['source']} {link['relation'].replace('_', ' ')} {link['target']} ({facts}){said}"


@click.command("lineage")
@click.argument("name", metavar="ID|KEY")
@click.option(
    "--direction",
    type=click.Choice(DIRECTIONS),
    default="both",
    show_default=True,
    help="Follow links from their source, from their target, or from either.",
)
@click.option("--depth", type=int, default=3, show_default=True, help="Maximum number of hops, 1 to 10.")
@click.option(
    "--relation",
    "relations",
    type=click.Choice(RELATIONS),
    multiple=True,
    help="Follow only this relation; may be repeated.",
)
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart and nothing else.")
@shared_options("db", "json")
def command(
    common: Common, name: str, direction: Direction, depth: int, relations: tuple[str, ...], mermaid: bool
) -> None:
    """Show why a memory was decided and what followed, by its causal links.

    Links are grouped by meaning, the nearest and strongest first; contradictions and outdated memories come last.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory.
        direction: Whether links are followed from their source, from their target, or from either.
        depth: Maximum number of hops, 1 to 10.
        relations: Relations to follow; none for all.
        mermaid: Whether only a Mermaid flowchart is printed.
    """
    if mermaid and common.as_json:
        raise click.UsageError("--mermaid and --json print different documents; choose one of them")
    with existing_store(common) as memory:
        found = memory.graph.lineage(known_key(memory, name), direction=direction, depth=depth, relations=relations)
    if common.as_json:
        print_json(found.as_json())
    elif mermaid:
        click.echo(found.mermaid(), nl=False)
    else:
        _print(found)


def _print(found: Lineage) -> None:
    document = found.as_json()
    title = f", {found.title}" if found.title not in ("", found.key) else ""
    click.echo(
        wrap_text(
            f"{found.key}{title}: {plural(len(found.steps), 'link')} within {plural(found.depth, 'hop')}",
            bold=True,
        )
    )
    for reading, links in document["groups"].items():
        click.echo(wrap_text(reading))
        for link in links:
            click.echo(wrap_text(link_text(link), indent="    ", first="  "))
    if found.cut:
        click.echo(wrap_text("there are more: ask for fewer hops, one direction or one relation"))
    for hint in found.hints:
        click.echo(wrap_text(f"note: {hint}"))
    if not found.steps:
        click.echo(
            wrap_text("Documents declare links under causalLinks; `speckit-memory links add` makes one by hand.")
        )
