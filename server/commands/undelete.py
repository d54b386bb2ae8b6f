"""`undelete`: restores deleted memories and their files."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, table, wrap_text

LISTED = 50


@click.command("undelete")
@click.argument("deletion", required=False)
@shared_options("db", "json")
def command(common: Common, deletion: str | None) -> None:
    """Restore a DELETION: memories with their learned data, and files.

    Without a name, list the deletions.
    """
    with existing_store(common) as memory:
        if deletion is None:
            found = memory.deletions.list(LISTED)
        else:
            back = memory.deletions.undelete(deletion)
    if deletion is not None:
        if common.as_json:
            shown = {"memories": list(back.memories), "files": list(back.files), "pending": back.pending}
            print_json({"undone": deletion, **shown})
            return
        memories, files = plural(len(back.memories), "memory"), plural(len(back.files), "file")
        click.echo(wrap_text(f"{memories} and {files} were restored"))
        if back.pending:
            click.echo(wrap_text(f"{plural(back.pending, 'passage')} without vectors: {WHO_EMBEDS}", dim=True))
        return
    rows = [
        {
            "name": one.name,
            "at": datetime.fromtimestamp(one.at, UTC).isoformat(timespec="seconds"),
            "what": one.why,
            "memories": len(one.memories),
        }
        for one in found
    ]
    if common.as_json:
        print_json({"deletions": rows})
    elif rows:
        lines = [(str(row["name"]), str(row["at"]), str(row["memories"]), str(row["what"])) for row in rows]
        click.echo(table([("deletion", "at", "memories", "what"), *lines], right=[2], headed=True))
    else:
        click.echo(wrap_text("there is no deletion that could be undone"))
