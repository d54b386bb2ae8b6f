"""`list`: lists memories, a page at a time (feature T5)."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.folder_text import in_folder, missing_folder
from speckit_memory.server.views.memory_list import PartOfPage, is_passage, passage_text, rows_of, with_passages

SORTS = ("created_at", "updated_at", "importance_weight")
DATE = len("2026-11-22")


@click.command("list")
@click.option("--folder", default="", metavar="DIR", help="This folder and below.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="created_at",
    show_default=True,
    help="Sort by newest, last changed or heaviest first.",
)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of memories.")
@click.option(
    "--offset", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Number of memories to skip."
)
@click.option("--chunks", is_flag=True, help="Show the passages of each memory below it.")
@shared_options("db", "json")
def command(common: Common, folder: str, sort: str, limit: int, offset: int, chunks: bool) -> None:
    """List the memories, newest first, a page at a time.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        folder: Folder that limits the command, with all below it; "" for the whole store.
        sort: Order: newest, last changed or heaviest first.
        limit: Maximum number of memories.
        offset: Number of memories to skip.
        chunks: Whether the passages of each memory are shown.
    """
    with existing_store(common) as memory:
        memories, total = memory.list(folder, sort, limit, offset)
        rows = with_passages(memory, rows_of(memories)) if chunks else rows_of(memories)
        missing = missing_folder(memory, folder)
    if common.as_json:
        print_json({"total": total, "offset": offset, "memories": rows, "warnings": [missing] if missing else []})
        return
    for row in rows:
        if is_passage(row):
            click.echo(wrap_text(passage_text(row), indent="      ", first="    "))
            continue
        title = row["title"] if row["title"] != row["key"] else ""
        facts = (title, f"id {row['id']}", "" if row["tier"] == "normal" else row["tier"], row["updated"][:DATE])
        click.echo(wrap_text(" · ".join([row["key"], *filter(None, facts)]), indent="    ", first=""))
    part = PartOfPage(rows, len(rows))
    end = offset + part.memories
    more = f"; --offset {end} continues" if part.memories and end < total else ""
    if part.is_cut:
        click.echo(wrap_text(f"{part.told_cut()}; `speckit-memory show` has the whole document", dim=True))
    if missing:
        click.echo(wrap_text(f"warning: {missing}", fg="yellow"))
    click.echo(wrap_text(f"{part.memories} of {plural(total, 'memory')}{in_folder(folder)}{more}", dim=True))
