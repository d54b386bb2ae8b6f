"""`checkpoint restore`: brings a state back."""

from __future__ import annotations

from typing import Any

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared
from speckit_memory.server.console.output import print_json, wrapped
from speckit_memory.server.views.checkpoint_text import as_json, parted_counts, told_files, told_restore
from speckit_memory.server.views.kept_checkpoint import require_kept


@click.command("restore")
@click.argument("name")
@click.option("--replace", is_flag=True, help="Memories that the checkpoint does not have go, in its folder or in all.")
@click.option("--no-backup", is_flag=True, help="With --replace: make no checkpoint of the store first.")
@click.option("--foreign", is_flag=True, help="Take one of another store; its memories get new ids.")
@shared("db", "json")
def command(common: Common, name: str, replace: bool, no_backup: bool, foreign: bool) -> None:
    """Bring the memories of the checkpoint NAME back as they were; what came since stays, unless it is replaced.

    All of it or nothing. Servers and other processes go on with what came back. Where the store is gone, a new one is
    made. Before memories are replaced, a checkpoint of the store is made.
    """
    require_kept(settings(common.db).db, name)
    with common.open() as memory:
        done = memory.checkpoint_restore(name, replace=replace, foreign=foreign, keep_before=not no_backup)
    result = done.restored
    if common.as_json:
        document: dict[str, Any] = {"checkpoint": as_json(result.checkpoint), "before": done.before or None}
        counts = ("returned", "set_back", "removed", "pending")
        print_json(document | {key: getattr(result, key) for key in counts} | parted_counts(done))
        return
    click.echo(wrapped(told_restore(result)))
    click.echo(wrapped(told_files(done, "`speckit-memory undelete {}`", "`save FILE`")))
    if done.before:
        click.echo(wrapped(f"the store as it was before is kept as {done.before}", dim=True))
