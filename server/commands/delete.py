"""`delete`: deletes memories and their files."""

from __future__ import annotations

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("delete")
@click.argument("name", required=False, metavar="[ID|KEY]")
@click.option(
    "--folder", metavar="DIR", help="All memories of this folder and below it; with --tier, only those of the tier."
)
@click.option("--tier", default="", metavar="TIER", help="All memories of this tier.")
@click.option(
    "--older-than",
    type=click.IntRange(1, 100_000),
    metavar="DAYS",
    help="With --tier: only memories unchanged for this many days.",
)
@click.option("--skip-checkpoint", is_flag=True, help="With --tier: make no checkpoint first.")
@click.option("--confirm", is_flag=True, help="Needed for folders, tiers, and constitutional or critical memories.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted without deleting it.")
@shared_options("db", "json")
def command(
    common: Common,
    name: str | None,
    folder: str | None,
    tier: str,
    older_than: int | None,
    skip_checkpoint: bool,
    confirm: bool,
    dry_run: bool,
) -> None:
    """Delete a memory, a folder or a tier; `undelete` restores it.

    The files are moved aside. Before a folder or a tier is deleted, a checkpoint is made; if that fails, nothing is
    deleted.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory; None to delete a folder or a tier.
        folder: Folder whose memories are deleted, with all below it; None for no folder.
        tier: Tier whose memories are deleted; "" for no tier.
        older_than: With `tier`: days for which the memories must be unchanged.
        skip_checkpoint: With `tier`: whether no checkpoint is made first.
        confirm: Whether deleting folders, tiers, or constitutional and critical memories is confirmed.
        dry_run: Whether the memories are only shown.
    """
    context = click.get_current_context()
    if (name is None) == (folder is None and not tier):
        wrong = "is needed" if name is None else "not both"
        raise click.UsageError(f"a memory, or --folder or --tier, {wrong}", context)
    if (older_than or skip_checkpoint) and not tier:
        raise click.UsageError("--older-than and --skip-checkpoint go with --tier", context)
    with existing_store(common) as memory:
        if name is not None:
            deleted = memory.deletions.delete(known_key(memory, name), confirm=confirm, dry_run=dry_run)
        elif tier:
            deleted = memory.deletions.delete_tier(
                tier,
                folder=_folder_name(folder),
                older_than_days=older_than,
                confirm=confirm,
                skip_checkpoint=skip_checkpoint,
                dry_run=dry_run,
            )
        else:
            deleted = memory.deletions.delete_folder(_folder_name(folder), confirm=confirm, dry_run=dry_run)
    from speckit_memory.server.views.deleted_text import LISTED, deleted_data, describe_deletion

    if common.as_json:
        print_json(deleted_data(deleted, dry_run))
        return
    click.echo(wrap_text(describe_deletion(deleted, dry_run)))
    for one in deleted.memories[:LISTED]:
        click.echo(wrap_text(f"  {one.key} (id {one.id}, {one.tier})"))
    if len(deleted.memories) > LISTED:
        click.echo(wrap_text(f"  and {len(deleted.memories) - LISTED} more"))
    if deleted.checkpoint:
        click.echo(wrap_text(f"the state before the deletion is the checkpoint {deleted.checkpoint}", dim=True))
    if deleted.name:
        click.echo(wrap_text(f"to restore it: speckit-memory undelete {deleted.name}", dim=True))


def _folder_name(folder: str | None) -> str:
    """The folder as given: an empty name, as from an unset variable, is the root and not the same as no folder."""
    return "" if folder is None else folder or "."
