"""`checkpoint restore`: restores the memories of a checkpoint."""

from __future__ import annotations

from typing import Any

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.checkpoint_text import as_json, parted_counts, told_files, told_restore
from speckit_memory.server.views.find_checkpoint import require_kept


@click.command("restore")
@click.argument("name")
@click.option(
    "--replace", is_flag=True, help="Delete memories that are not in the checkpoint, in its folder or everywhere."
)
@click.option("--no-backup", is_flag=True, help="With --replace: make no checkpoint of the store first.")
@click.option("--foreign", is_flag=True, help="Accept a checkpoint of another store; its memories get new ids.")
@shared_options("db", "json")
def command(common: Common, name: str, replace: bool, no_backup: bool, foreign: bool) -> None:
    """Restore the memories of the checkpoint NAME.

    Newer memories stay unless --replace is given. The command restores everything or nothing. Servers and other
    processes use the restored memories at once. A missing store is created. Before memories are replaced, a checkpoint
    of the present store is made.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Name of the checkpoint.
        replace: Whether memories that are not in the checkpoint are deleted.
        no_backup: With `replace`: whether no checkpoint of the store is made first.
        foreign: Whether a checkpoint of another store is accepted; its memories get new ids.
    """
    require_kept(settings(common.db).db, name)
    with common.open() as memory:
        done = memory.checkpoints.restore(name, replace=replace, foreign=foreign, keep_before=not no_backup)
    result = done.restored
    if common.as_json:
        document: dict[str, Any] = {"checkpoint": as_json(result.checkpoint), "before": done.before or None}
        counts = ("returned", "set_back", "removed", "pending")
        print_json(document | {key: getattr(result, key) for key in counts} | parted_counts(done))
        return
    click.echo(wrap_text(told_restore(result)))
    click.echo(wrap_text(told_files(done, "`speckit-memory undelete {}`", "`save FILE`")))
    if done.before:
        click.echo(wrap_text(f"the store before the restore is kept as {done.before}", dim=True))
