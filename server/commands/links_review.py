"""`links review`: lists findings of background work for people to review."""

from __future__ import annotations

import time

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.shown_number import PrefixedInt
from speckit_memory.server.console.output import print_json, wrap_text

MOST_STALE = 20
"""Maximum number of stale memories printed; JSON has all."""


@click.command("review")
@click.option(
    "--dismiss",
    type=PrefixedInt(),
    metavar="NUMBER",
    help="Mark the pair as not contradictory.",
)
@shared_options("db", "json")
def command(common: Common, dismiss: int | None) -> None:
    """Show pairs that seem to contradict each other, and memories unused for 90 days.

    The weekly background work finds the pairs and changes nothing. A pair is settled by a link (`links add NEWER
    supersedes OLDER`), by an edit, or with --dismiss.
    """
    with existing_store(common) as memory:
        if dismiss is not None:
            memory.graph.dismiss(dismiss)
        found = memory.graph.review()
    if common.as_json:
        print_json(found.as_json())
        return
    for pair in found.contradictions:
        click.echo(wrap_text(f"{pair.id}. {pair.newer} may contradict {pair.older}", bold=True))
        about = f"similarity {pair.similarity:.2f}, {pair.pattern} {pair.confidence:.2f}: {pair.sentence}"
        click.echo(wrap_text(about, indent="    "))
    for memory_row in found.stale[:MOST_STALE]:
        day = time.strftime("%Y-%m-%d", time.localtime(memory_row.since))
        click.echo(wrap_text(f"stale since {day}: {memory_row.key}"))
    if (more := len(found.stale) - MOST_STALE) > 0:
        click.echo(wrap_text(f"and {plural(more, 'stale memory')} more"))
    pairs, stale = (
        plural(len(found.contradictions), "contradiction"),
        plural(len(found.stale), "stale memory"),
    )
    click.echo(wrap_text(f"{pairs} to review, {stale}", dim=True))
