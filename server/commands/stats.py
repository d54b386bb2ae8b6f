"""`stats`: how much is stored, and where (feature T6)."""

from __future__ import annotations

import time

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.options import Common, shared
from speckit_memory.server.output import counted, print_json, table, table_rows, wrapped
from speckit_memory.server.store_figures import store_figures


@click.command("stats")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many folders, the largest first."
)
@shared("db", "json")
def command(common: Common, limit: int) -> None:
    """Count what is stored: memories by tier and folder, passages, causal links, trigger phrases, bytes."""
    from speckit_memory.memory.store.reading.density import told

    with existing_store(common) as memory:
        stats = memory.stats()
    figures = store_figures(stats, limit) | {
        "folder_count": len(stats.by_folder),
        "pending_links": stats.pending_links,
        "oldest": stats.oldest,
        "newest": stats.newest,
        "embedding_model": stats.embedding_model,
        "dimensions": stats.dimensions,
    }
    if common.as_json:
        print_json(figures)
        return
    facts = [
        ("memories", f"{stats.memories:,}"),
        *((f"  {tier}", f"{count:,}") for tier, count in figures["by_tier"].items()),
        ("passages", f"{stats.chunks:,}"),
        ("trigger phrases", f"{stats.triggers:,}"),
        ("causal links", f"{stats.edges:,}, {told(stats.density)}"),
        ("bytes", f"{stats.bytes:,}"),
    ]
    if stats.pending_links:
        facts.append(("declared links", f"{stats.pending_links:,} lead to nothing that is there"))
    if stats.pending_embeddings:
        facts.append(("without vectors", f"{counted(stats.pending_embeddings, 'memory')}; the next `index` makes them"))
    if stats.embedding_model:
        facts.append(("model", f"{stats.embedding_model}, {stats.dimensions} dimensions"))
    if stats.oldest is not None and stats.newest is not None:
        facts.append(("created", f"{_day(stats.oldest)} to {_day(stats.newest)}"))
    for row in table_rows(facts):
        click.echo(row)
    folders = [(each["folder"] or "(root)", f"{each['memories']:,}") for each in figures["folders"]]
    if folders:
        click.echo("\n" + table([("folder", "memories"), *folders], right=[1], headed=True))
    if further := len(stats.by_folder) - len(folders):
        click.echo(wrapped(f"and {counted(further, 'folder')} more; --limit N shows them", dim=True))


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))
