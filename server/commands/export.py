"""`export`: writes memories to files."""

from __future__ import annotations

from pathlib import Path

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text

LISTED = 10


@click.command("export")
@click.argument("directory", type=NamedPath(), metavar="DIR")
@click.option("--folder", default="", metavar="FOLDER", help="Only the memories of this folder and below.")
@shared_options("db", "json")
def command(common: Common, directory: Path, folder: str) -> None:
    """Write every memory into DIR as a file that people can read and edit.

    Everything that was learned about a memory is written next to it. DIR is created, or must be empty or hold an
    earlier export, which is updated. `import` restores all of it, here or elsewhere.
    """
    with existing_store(common) as memory:
        done = memory.exchange.export(directory, folder=folder)
    if common.as_json:
        print_json(
            {
                "path": str(done.path),
                "memories": done.memories,
                "written": done.written,
                "removed": done.removed,
                "without_file": list(done.without_file),
                "secrets": done.secrets,
            }
        )
        return
    files = f"{plural(done.written, 'file')} written" + (f", {done.removed} removed" if done.removed else "")
    click.echo(wrap_text(f"{done.path}: {plural(done.memories, 'memory')}, {files}"))
    if done.secrets:
        click.echo(wrap_text(f"{plural(done.secrets, 'secret')} left out of the texts", dim=True))
    if done.without_file:
        named = ", ".join(done.without_file[:LISTED]) + (" …" if len(done.without_file) > LISTED else "")
        click.echo(wrap_text(f"written from the store, as the file is missing: {named}", dim=True))
