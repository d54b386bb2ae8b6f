"""`stats`: shows the size of the store (feature T6)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table, table_rows, wrap_text
from speckit_memory.server.views.store_figures import left_out_text, store_figures

if TYPE_CHECKING:
    from speckit_memory.engine.answers.request import FolderOrder

RANKINGS: tuple[FolderOrder, ...] = ("count", "recency", "importance", "composite")


@click.command("stats")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of folders.")
@click.option(
    "--rank",
    "ranking",
    type=click.Choice(RANKINGS),
    default="count",
    show_default=True,
    help="Rank folders by memories, the latest change, their tiers, or all of these.",
)
@click.option(
    "--exclude", multiple=True, metavar="REGEX", help="Leave out folders that match this expression; may be repeated."
)
@click.option("--scores", is_flag=True, help="Show the score of each folder and its components.")
@click.option("--archived", is_flag=True, help="Rank archive folders too, and count archived memories.")
@shared_options("db", "json")
def command(
    common: Common, limit: int, ranking: FolderOrder, exclude: tuple[str, ...], scores: bool, archived: bool
) -> None:
    """Count memories by tier and folder, passages, causal links, triggers and bytes.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        limit: Maximum number of folders.
        ranking: Order of the folders.
        exclude: Regular expressions of folders to leave out.
        scores: Whether the score of each folder is shown with its components.
        archived: Whether archived folders and memories are counted.
    """
    from speckit_memory.memory.store.reading.density import describe_density

    with existing_store(common) as memory:
        ranked = memory.inventory.folders(ranking, exclude=exclude, scores=scores, archived=archived)
        stats = memory.inventory.stats()
    figures = store_figures(stats, ranked, limit, scores=scores) | {
        "pending_links": stats.pending_links,
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
        ("causal links", f"{stats.edges:,}, {describe_density(stats.density)}"),
        ("bytes", f"{stats.bytes:,}"),
    ]
    if stats.pending_links:
        facts.append(("declared links", f"{stats.pending_links:,} have no target"))
    if stats.pending_embeddings:
        facts.append(
            ("without vectors", f"{plural(stats.pending_embeddings, 'memory')}; the next `index` creates them")
        )
    if stats.embedding_model:
        facts.append(("model", f"{stats.embedding_model}, {stats.dimensions} dimensions"))
    if stats.oldest is not None and stats.newest is not None:
        facts.append(("created", f"{_day(stats.oldest)} to {_day(stats.newest)}"))
    for row in table_rows(facts):
        click.echo(row)
    heads, folders = ["folder", "memories"], []
    for each in figures["folders"]:
        folders.append([each["folder"] or "(root)", f"{each['memories']:,}"])
        if ranking == "recency":
            folders[-1].append("unknown" if each["updated"] is None else _day(each["updated"]))
        if scores:
            folders[-1] += [f"{value:g}" for value in (each["score"], *each["parts"].values())]
    if folders:
        heads += ["changed"] if ranking == "recency" else []
        heads += ["score", *figures["folders"][0]["parts"]] if scores else []
        click.echo("\n" + table([heads, *folders], right=range(1, len(heads)), headed=True))
    if further := len(ranked.folders) - len(folders):
        click.echo(wrap_text(f"and {plural(further, 'folder')} more; --limit N shows them", dim=True))
    if left_out := left_out_text(figures["left_out"]):
        click.echo(wrap_text(f"not ranked: {left_out}", dim=True))


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))
